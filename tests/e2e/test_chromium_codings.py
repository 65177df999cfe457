"""Chromium decodes Brotli and Zstandard in loads over http too, which it normally accepts over https only."""

from pathlib import Path

import pytest
from small_pages import assert_ok, document, load, page
from synth_site import program as installed

from firstflight.engines.clients.chromium.browser import find_browser
from firstflight.engines.clients.chromium.client import Chromium
from firstflight.engines.emulate import Emulator
from firstflight.model.page import Headers
from firstflight.pages import LoadedPage, under
from firstflight.pages.bodies import encoded

HOST = "https://o0.test"
DOCUMENT = b"<!doctype html><link rel=stylesheet href=/a.css><p>text"
SHEET = b"p { background: url(/b.png) }"


def coded(folder: Path, coding: str) -> LoadedPage:
    """A document whose style sheet is in `coding`, and names an image."""
    sheet = encoded(SHEET, [coding], 0)
    files = {0: folder / "document.html", 1: folder / "a.css", 2: folder / "b.png"}
    for index, body in enumerate((DOCUMENT, sheet, b"no image")):
        files[index].write_bytes(body)
    found = {"resource": 0, "via": "parser"}
    resources = [
        document(url=f"{HOST}/", body_bytes=len(DOCUMENT)),
        document(url=f"{HOST}/a.css", kind="style", mime="text/css", body_bytes=len(sheet), initiator=found),
        document(url=f"{HOST}/b.png", kind="image", mime="image/png", body_bytes=8, initiator=found),
    ]
    headers: dict[int, Headers] = {1: (("Content-Type", "text/css"), ("Content-Encoding", coding))}
    return LoadedPage(page(f"coded-{coding}", *resources).page, files, headers=headers)


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize("coding", ["gzip", pytest.param("br", marks=pytest.mark.ordinary_user), "zstd"])
def test_a_style_sheet_is_decoded_in_the_clear(coding: str, tmp_path: Path) -> None:
    browser = Emulator(clients={"chromium": Chromium(find_browser(installed("chromium")))})
    record = load(browser, under("http", coded(tmp_path, coding)), "tfo", client="chromium")
    assert_ok(record)
    asked = {row["url"] for row in record["requests"]}
    assert asked == {"http://o0.test/", "http://o0.test/a.css", "http://o0.test/b.png"}

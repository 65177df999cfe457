"""Scripts that build URLs from the time and from random numbers build the same URLs in every load by default.

With `determinism=False` they do not.
"""

from pathlib import Path

import pytest
from small_pages import document, load, page
from synth_site import program as installed

from firstflight.engines.clients.chromium.browser import find_browser
from firstflight.engines.clients.chromium.client import Chromium
from firstflight.engines.emulate import Emulator
from firstflight.engines.engine import Record
from firstflight.pages import LoadedPage

RECORDED = "Wed, 13 Mar 2013 01:49:53 GMT"
MADE = """
const bytes = crypto.getRandomValues(new Uint32Array(2)).join("-");
const made = new URLSearchParams({
    random: Math.random(), bytes, now: Date.now(), date: +new Date(), text: Date(), given: +new Date(2000, 1),
});
"""
IMAGE = f"<script>{MADE} new Image().src = `%s?${{made}}`</script>"
PARTS = {
    "http://o0.test/": IMAGE % "/document"
    + "<iframe src=/frame.html></iframe><iframe src=http://o1.test/frame.html></iframe>",
    "http://o0.test/frame.html": IMAGE % "/frame",
    "http://o1.test/frame.html": IMAGE % "/foreign",
}
MEASURES = """<script>
const began = {date: Date.now(), clock: performance.now()}, timing = performance.timing;
document.cookie = `fresh=1; expires=${new Date(began.date + 60000).toUTCString()}; path=/`;
document.cookie = `stale=1; expires=${new Date(began.date - 60000).toUTCString()}; path=/`;
const next = () => {
    const passed = {date: Date.now() - began.date, clock: performance.now() - began.clock};
    // A page that asks for something is not at rest.
    if (passed.date < 2000) return fetch("/tick").then(() => setTimeout(next, 50));
    new Image().src = "/measured?" + new URLSearchParams({
        clocks_agree: Math.abs(passed.date - passed.clock) < 1500,
        navigation_is_near: Math.abs(began.date - timing.navigationStart) < 5000,
        origin_is_near: Math.abs(performance.timeOrigin - timing.navigationStart) < 5,
        cookies: document.cookie,
        is_a_date: new Date() instanceof Date && new Date().constructor === Date,
    });
};
next();
</script>"""


@pytest.fixture(scope="module")
def browser(emulator: Emulator) -> Emulator:
    """The engine with the system's browser; without a laboratory, `emulator` ends the tests."""
    return Emulator(clients={"chromium": Chromium(find_browser(installed("chromium")))})


def recorded(folder: Path, parts: dict[str, str]) -> LoadedPage:
    """A page with these bodies, recorded at `RECORDED`."""
    bodies = {index: folder / f"{index}.body" for index in range(len(parts))}
    for file, text in zip(bodies.values(), parts.values(), strict=True):
        file.write_text(text)
    resources = [
        document(
            url=url,
            body_bytes=len(text),
            kind="frame",
            initiator={"resource": 0, "via": "parser", "at_byte": 1},
        )
        for url, text in parts.items()
    ]
    resources[0] = document(body_bytes=len(parts["http://o0.test/"]))
    return LoadedPage(page("made", *resources).page, bodies, headers={0: (("Date", RECORDED),)})


def made(record: Record) -> dict[str, str]:
    """The query of each URL that a script made, by the last part of the URL's path."""
    assert record["load"]["status"] == "ok", record["load"]
    split = [row["url"].partition("?") for row in record["requests"]]
    return {path.rpartition("/")[2]: query for path, _, query in split if query}


# The page's clock advances in steps of a second. On a busy machine a frame may start one step later in one of
# the two loads, and would then make another URL.
@pytest.mark.timing
def test_documents_and_frames_make_the_same_urls_in_every_load(browser: Emulator, tmp_path: Path) -> None:
    site = recorded(tmp_path, PARTS)
    tcp, tfo = (made(load(browser, site, mode, 50.0, client="chromium")) for mode in ("tcp", "tfo"))
    assert tcp.keys() == {"document", "frame", "foreign"}
    assert tcp == tfo
    assert all("text=Wed+Mar+13+2013" in query for query in tcp.values()), tcp
    assert len({query.partition("&")[0] for query in tcp.values()}) == len(tcp), "each has numbers of its own"


def test_without_it_no_url_is_made_twice(browser: Emulator, tmp_path: Path) -> None:
    site = recorded(tmp_path, PARTS)
    loads = [
        made(load(browser, site, mode, 50.0, client="chromium", determinism=False)) for mode in ("tcp", "tfo")
    ]
    assert loads[0].keys() == loads[1].keys() == {"document", "frame", "foreign"}
    for name, query in loads[0].items():
        random, bytes_, now = query.split("&")[:3]
        assert not {random, bytes_, now} & set(loads[1][name].split("&"))


def test_time_goes_on_and_measurements_agree_with_it(browser: Emulator, tmp_path: Path) -> None:
    site = recorded(tmp_path, {"http://o0.test/": MEASURES})
    [query] = made(load(browser, site, "tcp", client="chromium")).values()
    assert query == (
        "clocks_agree=true&navigation_is_near=true&origin_is_near=true&cookies=fresh%3D1&is_a_date=true"
    )

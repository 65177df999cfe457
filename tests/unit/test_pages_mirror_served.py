"""How a mirror's files are served: with which charset, and which of them beside the page."""

from pathlib import Path

import pytest

from firstflight.pages import under
from firstflight.pages.readers.mirror import open_mirror

UTF_8 = "<!doctype html><title>Café</title>".encode()


def mime_of(root: Path, document: bytes) -> str:
    host = root / "a.test"
    host.mkdir()
    (host / "index.html").write_bytes(document)
    return open_mirror(root, "http://a.test/").page.resources[0].mime


@pytest.mark.parametrize(
    ("document", "mime"),
    [
        (UTF_8, "text/html; charset=utf-8"),
        (b'<meta charset="utf-8">' + UTF_8, "text/html"),
        (b'<meta http-equiv=Content-Type content="text/html; charset=utf-8">' + UTF_8, "text/html"),
        (b"\xef\xbb\xbf" + UTF_8, "text/html"),
        (UTF_8.decode().encode("latin-1"), "text/html"),
        (b"<!doctype html>plain", "text/html"),
    ],
)
def test_a_document_that_is_silently_utf_8_is_said_to_be(tmp_path: Path, document: bytes, mime: str) -> None:
    assert mime_of(tmp_path, document) == mime


def test_the_log_s_charset_goes_with_the_type_and_none_is_made_up(shared_data: Path) -> None:
    page = open_mirror(shared_data / "course" / "Paper", "http://www.nytimes.com").page
    mimes = {resource.url: resource.mime for resource in page.resources}
    assert mimes["http://www.nytimes.com/"] == "text/html; charset=utf-8"
    assert mimes["http://www.nytimes.com/packages/html/recommendations/ad.html"] == "text/html"


def test_another_visit_to_the_same_url_is_no_spare_answer(shared_data: Path) -> None:
    page = open_mirror(shared_data / "course" / "Paper", "http://www.nytimes.com")
    recorded = {resource.url for resource in page.page.resources}
    stem = "http://markets.on.nytimes.com/research/modules/home/home.asp?"
    assert sum(url.startswith(stem) for url in recorded) == 1
    assert not [spare.url for spare in page.spare if spare.url.startswith(stem)]
    assert page.spare


def test_a_mirror_in_the_clear_has_clear_texts_beside_the_page_too(shared_data: Path) -> None:
    page = under("http", open_mirror(shared_data / "course" / "Paper", "http://www.amazon.com"))
    host = b"//images-na.ssl-images-amazon.com/"
    [beside] = [spare.file for spare in page.spare if spare.url == "http://www.amazon.com/index.html"]
    for file in (page.bodies[0], beside):
        assert b"http:" + host in file.read_bytes()
        assert b"https:" + host not in file.read_bytes()

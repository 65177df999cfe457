"""Scanners of HTML and style sheets, URLs of archives, and bodies put in the clear: none ever refuses."""

import atheris

from target import main

with atheris.instrument_imports(include=["firstflight"]):
    from firstflight.pages.fields import mime_of, repeatable
    from firstflight.pages.record.package import surt
    from firstflight.pages.scan import base_url, scan_css, scan_html
    from firstflight.pages.scheme import clear_headers, clear_text
    from firstflight.pages.urls import absolute_url, normal_url, usable_url


def test(data: bytes) -> None:
    """Scans `data` as everything that it may be."""
    scan_as_html(data)
    text = data.decode("utf-8", errors="replace")
    for found in scan_css(text):
        absolute_url(found.reference, "http://a.example/s.css")
    clear = clear_text(data)
    assert len(clear) <= len(data) + len("data-") * data.count(b"integrity")
    check_fields(text)


def scan_as_html(data: bytes) -> None:
    """Offsets lie in the file and ascend; references mean an http URL or none."""
    scan = scan_html(data)
    base = base_url(scan, "http://a.example/")
    for found in scan.references:
        assert 0 < found.offset <= len(data)
        url = absolute_url(found.reference, base)
        assert not url or url.startswith(("http://", "https://"))
    assert all(0 < script.offset <= len(data) for script in scan.scripts)


def check_fields(text: str) -> None:
    """What is kept of a header can be sent; a usable URL stays as it is, and has a key in an index."""
    fields = [(name, value) for name, _, value in (line.partition(":") for line in text.split("\n"))]
    for name, value in clear_headers(tuple(repeatable(fields))):
        assert not any(c in name + value for c in "\r\n\0")
    assert all(" " <= c <= "~" for c in mime_of(text))
    url = normal_url(text)
    if usable_url(url):
        assert url.isascii() and url.isprintable() and " " not in url
        assert normal_url(url) == url
        assert " " not in surt(url)


main(test)

"""A mirror's HTML document in UTF-8 that does not declare its charset is served with `charset=utf-8`."""

from pathlib import Path

import pytest

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

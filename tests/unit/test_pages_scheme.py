"""Pages converted to http: their references change, and nothing else does."""

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

import brotli  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstflight.errors import UsageError
from firstflight.pages import LoadedPage, Page, open_pages, under
from firstflight.pages.scheme import clear_body, clear_headers, clear_text, is_text


@pytest.mark.parametrize(
    ("recorded", "clear"),
    [
        (b'<img src="https://a.test/b">', b'<img src="http://a.test/b">'),
        (b"<img src=https://a.test/b>", b"<img src=http://a.test/b>"),
        (b"url(https://a.test/b)", b"url(http://a.test/b)"),
        (rb'{"u":"https:\/\/a.test\/b"}', rb'{"u":"http:\/\/a.test\/b"}'),
        (
            b"data='[&quot;https://a&quot;,&quot;https://b&quot;]'",
            b"data='[&quot;http://a&quot;,&quot;http://b&quot;]'",
        ),
        (b'"https://a.test/?to=https://b.test/"', b'"http://a.test/?to=https://b.test/"'),
        (b'"http://a.test/?to=https%3A%2F%2Fb"', b'"http://a.test/?to=https%3A%2F%2Fb"'),
        (b"var s = 'https://' + host", b"var s = 'http://' + host"),
        (b'<script integrity="sha256-x">', b'<script data-integrity="sha256-x">'),
        (b'content="upgrade-insecure-requests"', b'content=""'),
        (b"location.protocol == 'https:'", b"location.protocol == 'https:'"),
    ],
)
def test_references_lose_their_s_and_nothing_else_changes(recorded: bytes, clear: bytes) -> None:
    assert clear_text(recorded) == clear


@pytest.mark.parametrize(
    ("coding", "encode", "decode"),
    [
        ("", bytes, bytes),
        ("gzip", gzip.compress, gzip.decompress),
        ("deflate", zlib.compress, zlib.decompress),
        ("br", lambda text: brotli.compress(text, quality=9), brotli.decompress),
    ],
)
def test_a_coded_body_stays_in_its_coding_and_about_as_long(
    coding: str, encode: Callable[[bytes], bytes], decode: Callable[[bytes], bytes]
) -> None:
    text = b"".join(b'<a href="https://a.test/%d">%x</a>\n' % (n, n**7) for n in range(2_000))
    body = encode(text)
    clear = clear_body(body, coding)
    assert decode(clear) == clear_text(text)
    assert len(clear) == pytest.approx(len(body), rel=0.05)


def test_a_body_that_is_not_what_it_says_stays() -> None:
    for coding in ("gzip", "br", "zstd", "strange"):
        assert clear_body(b'"https://a.test/"', coding) == b'"https://a.test/"'


@given(st.binary(max_size=300), st.sampled_from(["", "gzip", "br", "deflate", "zstd", "gzip, br"]))
def test_any_body_has_a_clear_one_that_stays_clear(body: bytes, coding: str) -> None:
    clear = clear_body(body, coding)
    assert clear_body(clear, coding) == clear


def test_header_fields_speak_of_http() -> None:
    recorded = (
        ("Location", "https://a.test/x"),
        ("Access-Control-Allow-Origin", "https://b.test"),
        ("Strict-Transport-Security", "max-age=1"),
        ("Set-Cookie", "a=b; Path=/; Secure; SameSite=None"),
        ("Content-Security-Policy", "img-src https: data:; upgrade-insecure-requests"),
    )
    assert clear_headers(recorded) == (
        ("Location", "http://a.test/x"),
        ("Access-Control-Allow-Origin", "http://b.test"),
        ("Set-Cookie", "a=b; Path=/"),
        ("Content-Security-Policy", "img-src http: data:; "),
    )


def test_types_that_refer_to_others_are_text() -> None:
    texts = ["text/html", "text/css", "application/javascript", "application/json", "image/svg+xml"]
    assert [is_text(mime) for mime in [*texts, "image/png", "font/woff2", ""]] == [True] * 5 + [False] * 3


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoadedPage:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    bodies = [b'<img src="https://b.test/i.png">', b"\x89PNG https://a.test/"]
    for index, body in enumerate(bodies):
        (tmp_path / str(index)).write_bytes(body)
    common = {"request_bytes": 300, "header_bytes": 200}
    found = {"resource": 0, "via": "parser", "at_byte": len(bodies[0])}
    resources = [
        {"url": "https://a.test/", "kind": "document", "mime": "text/html", **common},
        {"url": "https://b.test/i.png", "kind": "image", "mime": "image/png", "initiator": found, **common},
    ]
    sized = [{**one, "body_bytes": len(body)} for one, body in zip(resources, bodies, strict=True)]
    page = Page.from_fields({"name": "archive", "resources": sized})
    return LoadedPage(page, {0: tmp_path / "0", 1: tmp_path / "1"}, [], {0: (("X", "https://a.test/"),)})


def test_an_archive_in_the_clear_has_clear_urls_bodies_and_sizes(archive: LoadedPage) -> None:
    clear = under("http", archive)
    assert [resource.url for resource in clear.page.resources] == ["http://a.test/", "http://b.test/i.png"]
    body = clear.bodies[0].read_bytes()
    assert body == b'<img src="http://b.test/i.png">'
    assert clear.page.resources[0].body_bytes == len(body)
    assert clear.bodies[1] == archive.bodies[1]
    assert clear.headers == {0: (("X", "http://a.test/"),)}
    assert under("http", clear) is clear


def test_a_recorded_scheme_leaves_a_page_as_it_is(archive: LoadedPage) -> None:
    assert under("recorded", archive) is archive


def test_a_profile_can_be_put_under_tls_and_an_archive_cannot(archive: LoadedPage) -> None:
    [page] = open_pages(["wikipedia"])
    assert all(origin.startswith("https://") for origin in under("https", page).page.origins)
    with pytest.raises(UsageError, match="recorded bodies"):
        under("https", under("http", archive))


def test_the_embedded_pages_have_nothing_secure_in_the_clear() -> None:
    for page in open_pages(("amazon", "nytimes", "wsj", "wikipedia")):
        clear = under("http", page)
        assert not any(origin.startswith("https:") for origin in clear.page.origins)
        assert len(clear.page.resources) == len(page.page.resources)

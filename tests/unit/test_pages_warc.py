"""WARC and WACZ become pages: the bytes in the archive are those that crossed the wire."""

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from firstflight.errors import PageInputError
from firstflight.pages import LoadedPage, load_page

DOCUMENT = "http://a.example/"
Headers = list[tuple[str, str]]


class Recorder:
    """Writes a WARC without warcio, whose writer leaves temporary files open."""

    def __init__(self, *, zipped: bool = True) -> None:
        self._records: list[bytes] = []
        self._zipped = zipped

    def answer(
        self,
        url: str,
        body: bytes = b"",
        mime: str = "text/html",
        *,
        status: str = "200 OK",
        headers: Headers | None = None,
        kind: str = "response",
        date: str = "2024-01-01T00:00:00Z",
        fields: dict[str, str] | None = None,
    ) -> "Recorder":
        block = _header(f"HTTP/1.1 {status}", [("Content-Type", mime), *(headers or [])]) + body
        return self._write(kind, url, block, {"WARC-Date": date, **(fields or {})})

    def request(self, url: str, method: str = "GET", headers: Headers | None = None) -> "Recorder":
        return self._write("request", url, _header(f"{method} / HTTP/1.1", headers or []), {})

    def whole(self) -> bytes:
        return b"".join(self._records)

    def _write(self, kind: str, url: str, block: bytes, fields: dict[str, str]) -> "Recorder":
        own = {"WARC-Type": kind, "WARC-Target-URI": url, **fields, "Content-Length": str(len(block))}
        record = _header("WARC/1.1", list(own.items())) + block + b"\r\n\r\n"
        self._records.append(gzip.compress(record) if self._zipped else record)
        return self


def _header(first_line: str, fields: Headers) -> bytes:
    lines = [first_line, *(f"{name}: {value}" for name, value in fields)]
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"


def opened(folder: Path, recorder: Recorder, url: str = "") -> LoadedPage:
    path = folder / "x.warc.gz"
    path.write_bytes(recorder.whole())
    (loaded,) = load_page(f"{path}{url}")
    return loaded


def found(loaded: LoadedPage) -> list[tuple[str, int | None, str | None, bool | None]]:
    return [
        (r.url, i.resource, i.via, i.inferred) if (i := r.initiator) else (r.url, None, None, None)
        for r in loaded.page.resources
    ]


@pytest.mark.parametrize("zipped", [True, False])
def test_a_page_is_followed_from_its_document(tmp_path: Path, *, zipped: bool) -> None:
    recorder = Recorder(zipped=zipped)
    recorder.answer("http://a.example/i.png", b"png", "image/png")
    recorder.answer(DOCUMENT, b"<link rel=stylesheet href=s.css><script src=x.js></script>")
    recorder.answer("http://a.example/s.css", b"p { background: url(i.png) }", "text/css")
    recorder.answer("http://a.example/x.js", b"get('http://b.example/data.json')", "text/javascript")
    recorder.answer("http://b.example/data.json", b"{}", "application/json")
    recorder.answer("http://c.example/pixel", b"gif", "image/gif")
    assert found(opened(tmp_path, recorder)) == [
        (DOCUMENT, None, None, None),
        ("http://a.example/s.css", 0, "parser", False),
        ("http://a.example/x.js", 0, "parser", False),
        ("http://a.example/i.png", 1, "style", False),
        ("http://b.example/data.json", 2, "script", True),
        ("http://c.example/pixel", 0, "parser", True),
    ]


def test_bodies_stay_in_their_coding_and_lose_their_chunks(tmp_path: Path) -> None:
    zipped = gzip.compress(b"<img src=i.png>")
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(zipped), zipped)
    headers = [("Content-Encoding", "gzip"), ("Transfer-Encoding", "chunked"), ("ETag", "x")]
    recorder = Recorder().answer(DOCUMENT, chunked, headers=headers)
    loaded = opened(tmp_path, recorder.answer("http://a.example/i.png", b"p", "image/png"))
    assert loaded.bodies[0].read_bytes() == zipped
    assert loaded.page.resources[0].body_bytes == len(zipped)
    assert dict(loaded.headers[0]) == {
        "Content-Type": "text/html",
        "Content-Encoding": "gzip",
        "ETag": "x",
        "Transfer-Encoding": "chunked",
    }
    assert found(loaded)[1][1:] == (0, "parser", False)


def test_a_body_that_the_recorder_decoded_is_served_without_a_coding(tmp_path: Path) -> None:
    headers = [("Content-Encoding", "br"), ("Transfer-Encoding", "chunked"), ("Content-Length", "999999")]
    loaded = opened(tmp_path, Recorder().answer(DOCUMENT, b"<p>plain", headers=headers))
    assert loaded.bodies[0].read_bytes() == b"<p>plain"
    assert dict(loaded.headers[0]) == {"Content-Type": "text/html", "Transfer-Encoding": "chunked"}


def test_a_page_begins_with_the_redirects_to_it(tmp_path: Path) -> None:
    moved = [("Location", "HTTP://A.example")]
    recorder = Recorder().answer("http://www.a.example/", b"", status="301 Moved", headers=moved)
    loaded = opened(tmp_path, recorder.answer(DOCUMENT, b"<p>"))
    assert found(loaded) == [("http://www.a.example/", None, None, None), (DOCUMENT, 0, "redirect", False)]


def test_redirects_in_a_circle_end(tmp_path: Path) -> None:
    recorder = Recorder()
    for url, target in (("/1", "/2"), ("/2", "/1")):
        moved = [("Location", target)]
        recorder.answer(f"http://a.example{url}", status="302 Found", headers=moved)
    recorder.answer(DOCUMENT, b"<img src=/1>")
    assert [url for url, *_ in found(opened(tmp_path, recorder))] == [
        DOCUMENT,
        "http://a.example/1",
        "http://a.example/2",
    ]


def test_requests_give_methods_sizes_and_referers(tmp_path: Path) -> None:
    style = [("Referer", "http://a.example/s.css")]
    recorder = Recorder().answer(DOCUMENT, b"<link rel=stylesheet href=s.css>")
    recorder.answer("http://a.example/s.css", b"", "text/css")
    recorder.answer("http://a.example/f", b"font", "font/woff2").request("http://a.example/f", headers=style)
    recorder.answer("http://a.example/log", b"").request("http://a.example/log", "POST")
    loaded = opened(tmp_path, recorder)
    assert found(loaded)[2] == ("http://a.example/f", 1, "style", True)
    assert [resource.method for resource in loaded.page.resources] == ["GET", "GET", "GET"]
    assert loaded.page.resources[2].request_bytes == len(
        "GET / HTTP/1.1\r\nReferer: http://a.example/s.css\r\n\r\n"
    )


def test_a_revisit_has_the_body_it_refers_to(tmp_path: Path) -> None:
    recorder = Recorder().answer(DOCUMENT, b"<img src=1><img src=2>")
    recorder.answer("http://a.example/1", b"same", "image/png")
    refers = {"WARC-Refers-To-Target-URI": "http://a.example/1"}
    recorder.answer("http://a.example/2", b"", "image/png", kind="revisit", fields=refers)
    loaded = opened(tmp_path, recorder)
    assert loaded.bodies[2].read_bytes() == b"same"
    assert loaded.bodies[1] == loaded.bodies[2]


def test_another_document_that_nothing_asks_for_is_another_page(tmp_path: Path) -> None:
    recorder = (
        Recorder().answer(DOCUMENT, b"<a href=/two>").answer("http://a.example/two", b"<img src=/2.png>")
    )
    recorder.answer("http://a.example/2.png", b"x", "image/png")
    recorder.request("http://a.example/2.png", headers=[("Referer", "http://a.example/two")])
    assert len(opened(tmp_path, recorder).page.resources) == 1
    second = opened(tmp_path, recorder, "#http://a.example/two")
    assert [url for url, *_ in found(second)] == ["http://a.example/two", "http://a.example/2.png"]


def test_a_start_page_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(PageInputError, match="no answer for the start page") as caught:
        opened(tmp_path, Recorder().answer(DOCUMENT, b"<p>"), "#http://b.example/")
    assert DOCUMENT in caught.value.hint


def test_an_archive_without_a_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PageInputError, match="no page: none of its 1 answers"):
        opened(tmp_path, Recorder().answer("http://a.example/i.png", b"x", "image/png"))


def wacz(folder: Path, warcs: dict[str, bytes], pages: list[dict[str, str]]) -> Path:
    path = folder / "x.wacz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in warcs.items():
            archive.writestr(name, data)
        lines = [{"format": "json-pages-1.0", "id": "pages"}, *pages]
        archive.writestr("pages/pages.jsonl", "\n".join(json.dumps(line) for line in lines))
    return path


def test_a_wacz_is_the_first_page_that_it_lists(tmp_path: Path) -> None:
    first = Recorder().answer("http://b.example/", b"<p>", date="2024-01-01T00:00:00Z")
    second = Recorder().answer(DOCUMENT, b"<p>", date="2024-01-01T00:01:00Z")
    second.answer("http://a.example/beacon", b"", "image/gif", date="2024-01-01T00:01:05Z")
    pages = [
        {"url": DOCUMENT, "ts": "2024-01-01T00:01:00Z"},
        {"url": "http://b.example/", "ts": "2024-01-01T00:00:00Z"},
    ]
    warcs = {"archive/1.warc.gz": first.whole(), "archive/2.warc.gz": second.whole()}
    path = wacz(tmp_path, warcs, pages)
    (loaded,) = load_page(str(path))
    assert [url for url, *_ in found(loaded)] == [DOCUMENT, "http://a.example/beacon"]
    (other,) = load_page(f"{path}#http://b.example/")
    assert [url for url, *_ in found(other)] == ["http://b.example/"]


@pytest.mark.parametrize("original_first", [True, False])
@pytest.mark.parametrize("by_digest", [True, False])
def test_a_revisit_has_its_body_wherever_the_archive_holds_it(
    tmp_path: Path, *, original_first: bool, by_digest: bool
) -> None:
    digest = {"WARC-Payload-Digest": "sha1:SAME"} if by_digest else {}
    refers = {} if by_digest else {"WARC-Refers-To-Target-URI": "http://a.example/1"}
    page = Recorder().answer(DOCUMENT, b"<img src=1><img src=2>")
    original = Recorder().answer("http://a.example/1", b"same", "image/png", fields=digest)
    page.answer("http://a.example/2", b"", "image/png", kind="revisit", fields=digest | refers)
    names = ("1", "2") if original_first else ("2", "1")
    warcs = dict(zip(names, (original.whole(), page.whole()), strict=True))
    files = {f"archive/{name}.warc.gz": warcs[name] for name in sorted(warcs)}
    (loaded,) = load_page(str(wacz(tmp_path, files, [{"url": DOCUMENT}])))
    bodies = {r.url: loaded.bodies[i].read_bytes() for i, r in enumerate(loaded.page.resources)}
    assert bodies["http://a.example/2"] == bodies["http://a.example/1"] == b"same"


@pytest.mark.parametrize("name", ["../evil.warc.gz", "/etc/evil", "archive/../../x.warc"])
def test_a_wacz_with_a_way_out_is_refused(tmp_path: Path, name: str) -> None:
    path = wacz(tmp_path, {name: b""}, [])
    with pytest.raises(PageInputError, match="leaves the archive"):
        load_page(str(path))


def test_a_zip_without_a_warc_is_no_wacz(tmp_path: Path) -> None:
    with pytest.raises(PageInputError, match="not a WACZ"):
        load_page(str(wacz(tmp_path, {}, [])))


def test_an_archive_that_is_one_gzip_stream_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "x.warc.gz"
    plain = (
        Recorder(zipped=False).answer(DOCUMENT, b"<img src=i>").answer("http://a.example/i", b"", "image/png")
    )
    path.write_bytes(gzip.compress(plain.whole()))
    assert len(load_page(str(path))[0].page.resources) == 2


@pytest.mark.parametrize("zipped", [True, False])
def test_wherever_a_warc_is_cut_off_it_says_so_or_is_whole(tmp_path: Path, *, zipped: bool) -> None:
    recorder = Recorder(zipped=zipped).answer(DOCUMENT, b"<p>" * 10)
    one = len(recorder.whole())
    whole = recorder.answer("http://a.example/i.png", b"x" * 100, "image/png").whole()
    path = tmp_path / "x.warc.gz"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        if abs(length - one) <= 4 or length >= len(whole) - 4:
            continue  # at a record's end, or in the blank lines after it
        with pytest.raises(PageInputError, match=r"x\.warc\.gz"):
            load_page(str(path))


def test_a_record_that_is_longer_than_it_says_is_an_error(tmp_path: Path) -> None:
    data = Recorder(zipped=False).answer(DOCUMENT, b"<p>" * 100).answer("http://a.example/i", b"x").whole()
    length = next(line for line in data.split(b"\r\n") if line.startswith(b"Content-Length"))
    path = tmp_path / "x.warc"
    path.write_bytes(data.replace(length, b"Content-Length: 150", 1))
    with pytest.raises(PageInputError, match="record 1"):
        load_page(str(path))


@pytest.mark.parametrize("start", [b"", b"WARC/1.0\r\n", b"WARC/1.0\r\nWARC-Type: response\r\nX: "])
def test_gigabytes_of_zeros_need_no_memory(tmp_path: Path, start: bytes) -> None:
    path = tmp_path / "x.warc.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(start)
        for _ in range(64):
            file.write(bytes(1 << 20))
    with pytest.raises(PageInputError, match=r"header does not end|Invalid WARC record"):
        load_page(str(path))


def test_a_body_larger_than_any_page_needs_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firstflight.pages.bodies.MOST_BODY_BYTES", 1 << 20)
    with pytest.raises(PageInputError, match=r"http://a\.example/: the body has more than 1 MiB"):
        opened(tmp_path, Recorder().answer(DOCUMENT, bytes(2 << 20)))


def test_a_content_coding_bomb_is_served_as_it_is_and_not_unpacked(tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(64 << 20), compresslevel=9)
    loaded = opened(tmp_path, Recorder().answer(DOCUMENT, bomb, headers=[("Content-Encoding", "gzip")]))
    assert loaded.bodies[0].read_bytes() == bomb

"""A corpus holds anonymous profiles, which identify no visitor; users list and load its pages by name."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from firstflight.cli.app import app
from firstflight.errors import PageInputError
from firstflight.pages import Page, load_page
from firstflight.pages.corpus import anonymous, read_corpus

SIZES = {"request_bytes": 400, "header_bytes": 200, "body_bytes": 1_000}
DOCUMENT = {"url": "https://www.shop.example/", "kind": "document", "mime": "text/html", **SIZES}
IMAGE = {
    "url": "https://u123456789.ads.example/ann@mail.example?visitor=4711",
    "kind": "image",
    "mime": "image/png",
    "initiator": {"resource": 0, "via": "parser"},
    **SIZES,
}


def page(name: str) -> Page:
    """A document, and an image on another host whose requests use the document's connection."""
    hosts = [
        {"host": "www.shop.example", "rtt_ms": 20.0, "http": "2", "tls_trips": 1},
        {"host": "u123456789.ads.example", "http": "2", "carrier": "www.shop.example"},
    ]
    return Page.from_fields({"name": name, "resources": [DOCUMENT, IMAGE], "hosts": hosts})


def packed(file: Path, files: Mapping[str, bytes]) -> Path:
    with tarfile.open(file, "w:xz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    profiles = {f"top/profiles/{name}.json": page(name).to_json().encode() for name in ("shop", "bank")}
    others = {"top/README.md": b"text", "top/sources.tsv": b"name", "../profiles/out/evil.json": b"{}"}
    return packed(tmp_path / "firstflight-corpus-0.1.0.tar.xz", profiles | others)


def test_an_anonymous_profile_keeps_sizes_and_says_nothing_of_a_visitor() -> None:
    recorded = page("shop")
    made = anonymous(recorded, "a repository").checked()
    text = made.to_json()
    for told in ("u123456789", "ann@", "4711", "visitor"):
        assert told not in text
    assert made.source == "a repository"
    for one, two in zip(made.resources, recorded.resources, strict=True):
        assert (one.wire_bytes, one.kind, one.initiator) == (two.wire_bytes, two.kind, two.initiator)
        assert len(one.url) == len(two.url)


def test_who_carries_whom_stays_true_where_the_name_is_a_token() -> None:
    recorded = page("shop")
    swapped = Page.from_json(recorded.to_json().replace("www.shop.example", "a12345678.shop.example"))
    first, second = anonymous(swapped, "").checked().hosts
    assert second.carrier == first.host != "a12345678.shop.example"


def test_pages_of_a_corpus_come_by_name_and_nothing_else_in_the_file_counts(corpus: Path) -> None:
    assert [one.name for one in read_corpus(corpus)] == ["bank", "shop"]


def test_pages_lists_the_embedded_ones_and_those_of_a_file(corpus: Path) -> None:
    ended = CliRunner().invoke(app, ["pages", "--corpus", str(corpus)])
    assert ended.exit_code == 0
    names = [line.split()[0] for line in ended.stdout.splitlines()[1:]]
    assert names == ["amazon", "nytimes", "wsj", "wikipedia", "bank", "shop"]


@pytest.mark.parametrize("named", [True, False])
def test_an_installed_corpus_gives_pages_by_name(
    named: bool, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if named:
        monkeypatch.setenv("FIRSTFLIGHT_CORPUS", str(corpus))
    else:
        monkeypatch.setenv("XDG_DATA_HOME", str(corpus.parent))
        (corpus.parent / "firstflight").mkdir()
        corpus.rename(corpus.parent / "firstflight" / corpus.name)
    (loaded,) = load_page("corpus:shop")
    assert loaded.page == page("shop")
    with pytest.raises(PageInputError, match="no page 'nothing' in it"):
        load_page("corpus:nothing")


def test_without_a_corpus_the_error_says_where_one_would_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(PageInputError, match="no corpus is installed"):
        load_page("corpus:shop")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "not a corpus"),
        (b"no archive", "not a corpus"),
        (None, "No such file"),
    ],
)
def test_what_is_no_corpus_is_said_to_be_none(content: bytes | None, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "x.tar.xz"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(PageInputError, match=problem):
        read_corpus(file)


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"top/README.md": b"text"}, "no folder profiles"),
        ({"top/profiles/x.json": b"\xff"}, "byte 0 is not UTF-8"),
        ({"top/profiles/x.json": b"{}"}, "x.tar.xz: x: "),
    ],
)
def test_a_bad_profile_is_named(files: dict[str, bytes], problem: str, tmp_path: Path) -> None:
    with pytest.raises(PageInputError, match=problem):
        read_corpus(packed(tmp_path / "x.tar.xz", files))


def test_a_corpus_that_was_cut_off_is_refused(corpus: Path) -> None:
    corpus.write_bytes(corpus.read_bytes()[:400])
    with pytest.raises(PageInputError, match="not a corpus"):
        read_corpus(corpus)

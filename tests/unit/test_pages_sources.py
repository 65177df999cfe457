"""The PAGE argument of commands opens what it names; otherwise the error says why not."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstflight.errors import PageInputError, UsageError
from firstflight.pages import LoadedPage, embedded_names, load_page, open_pages


def test_an_embedded_name_is_a_profile_without_bodies() -> None:
    for name in embedded_names():
        (loaded,) = load_page(name)
        assert loaded == LoadedPage(loaded.page)
        assert loaded.page.name == name


def test_pages_come_in_the_order_asked_for() -> None:
    assert [loaded.page.name for loaded in open_pages(["wsj", "amazon"])] == ["wsj", "amazon"]


def test_a_profile_file_is_the_page_it_holds(tmp_path: Path) -> None:
    (embedded,) = load_page("wikipedia")
    path = tmp_path / "mine.json"
    path.write_text(embedded.page.to_json())
    assert load_page(str(path)) == [embedded]


@pytest.mark.parametrize("name", ["x.har", "x.HAR", "x.warc", "x.warc.gz", "x.wacz"])
def test_an_archive_that_is_not_there_is_said_to_be_missing(name: str) -> None:
    with pytest.raises(PageInputError, match="no such file"):
        load_page(name)


@pytest.mark.parametrize("name", ["x.har", "x.WARC", "x.warc.gz", "x.wacz"])
def test_the_ending_of_a_file_says_what_archive_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"nothing of the kind")
    with pytest.raises(PageInputError, match=r"not JSON|Invalid WARC|not a zip"):
        load_page(str(tmp_path / name))


def test_a_name_that_is_nothing_lists_the_embedded_pages() -> None:
    with pytest.raises(PageInputError, match="no such file") as caught:
        load_page("amazn")
    assert "amazon, nytimes, wsj, wikipedia" in caught.value.hint


@pytest.mark.parametrize("spec", ["", "x" * 5_000, "nul\0byte", "dir#http://a.example/", f"x#{'y' * 5_000}"])
def test_a_path_that_cannot_be_is_a_page_input_error(spec: str) -> None:
    with pytest.raises(PageInputError):
        load_page(spec)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"http://a.example/\nwww.a.example\n", "line 2: 'www.a.example' is not"),
        (b"\n \n", "no URL in it"),
        (b"http://a.example/\xff\n", "byte 17 is not UTF-8"),
        (b"http://" + b"a" * 300 + b"/", "line 1: host name .* has 300 characters"),
        (b"http://[::1/", "line 1"),
        (b"http://a b/", "not an http or https URL"),
        (b"http://a:99999/", "line 1"),
        (b"x" * 1_000_001, "too many"),
    ],
)
def test_a_list_with_junk_names_the_line(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "my.pages"
    path.write_bytes(text)
    with pytest.raises(PageInputError, match=message) as caught:
        load_page(str(path))
    assert caught.value.hint


def test_a_list_without_its_mirror_says_so(tmp_path: Path) -> None:
    path = tmp_path / "my.pages"
    path.write_text("http://a.example/\n")
    with pytest.raises(PageInputError, match="no directory my in the same folder"):
        load_page(str(path))


def test_a_list_beside_its_mirror_gives_a_page_for_each_url(tmp_path: Path) -> None:
    host = tmp_path / "my" / "a.example"
    host.mkdir(parents=True)
    (host / "index.html").write_text("<p>")
    (host / "b.html").write_text("<p>")
    (tmp_path / "my.pages").write_text("\nhttp://a.example\n\nhttp://a.example/b.html\n")
    for spec in (tmp_path / "my.pages", tmp_path / "my"):
        assert [loaded.page.url for loaded in load_page(str(spec))] == [
            "http://a.example/",
            "http://a.example/b.html",
        ]


def test_a_start_page_with_an_impossible_host_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PageInputError, match="300 characters"):
        load_page(f"{tmp_path}#http://{'a' * 300}/")


@pytest.mark.parametrize(
    "text", [b'{"format": "firstfl', b"[]", b"\xff", b"", b'{"format": "firstflight-profile/9"}']
)
def test_a_damaged_profile_names_file_and_mend(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(text)
    with pytest.raises(PageInputError, match=r"mine\.json") as caught:
        load_page(str(path))
    assert caught.value.hint


@given(st.text(max_size=40), st.sampled_from([".json", ".har", ".wacz", ".pages", "#http://a.example/"]))
def test_no_word_fails_otherwise(spec: str, ending: str) -> None:
    try:
        load_page(f"{spec}{ending}")
    except UsageError as error:
        assert error.hint

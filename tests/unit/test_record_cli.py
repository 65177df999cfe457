"""`firstflight record` refuses wrong calls before anything is loaded."""

from pathlib import Path

import pytest

from firstflight.cli import main

URL = "http://a.test/"


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["record", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "hint: " in said.err
    return said.err


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("url", ["a.test", "ftp://a.test/", "http://", "file:///etc/passwd", "http://a b/"])
def test_what_is_no_url_is_refused(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is not an http or https URL" in refused([url, "-o", "x.wacz"], capsys)


def test_a_list_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert "none.pages" in refused(["none.pages", "-o", "x.wacz"], capsys)


def test_a_line_of_a_list_that_is_no_url_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "f.pages").write_text(f"{URL}\nnonsense\n")
    assert "f.pages: line 2" in refused(["f.pages", "-o", "x.wacz"], capsys)


def test_a_file_that_exists_is_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "x.wacz").write_text("precious")
    assert "--force" in refused([URL, "-o", "x.wacz"], capsys)
    assert (folder / "x.wacz").read_text() == "precious"


def test_a_folder_is_not_replaced(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "x.wacz").mkdir()
    assert "x.wacz exists" in refused([URL, "-o", "x.wacz", "--force"], capsys)


@pytest.mark.parametrize("out", ["none/x.wacz", "x.har", "wacz"])
def test_a_place_that_cannot_be_is_refused(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert out in refused([URL, "-o", out], capsys)


def test_a_browser_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no-such-browser" in refused([URL, "-o", "x.wacz", "--browser", "no-such-browser"], capsys)

"""The recordings of other people's pages: every one becomes a page, or is refused with its reason."""

from pathlib import Path

import pytest

from firstflight.errors import PageInputError
from firstflight.pages import LoadedPage, load_page


def opened(paths: list[Path]) -> tuple[dict[str, LoadedPage], dict[str, str]]:
    pages, refused = {}, {}
    for path in paths:
        try:
            (pages[path.name],) = load_page(str(path))
        except PageInputError as error:
            refused[path.name] = error.message
    return pages, refused


def sizes_agree(loaded: LoadedPage) -> bool:
    resources = loaded.page.resources
    return all(resources[i].body_bytes == file.stat().st_size for i, file in loaded.bodies.items())


@pytest.fixture(scope="module")
def hars(shared_data: Path) -> tuple[dict[str, LoadedPage], dict[str, str]]:
    return opened(sorted((shared_data / "corpus" / "har").rglob("*.har")))


def test_every_har_but_the_one_without_its_document_is_read(
    hars: tuple[dict[str, LoadedPage], dict[str, str]],
) -> None:
    pages, refused = hars
    assert len(pages) == 97
    assert list(refused) == ["2017_lemonde_splash.har"]
    assert "the page itself is not in it" in refused["2017_lemonde_splash.har"]
    assert all(sizes_agree(loaded) for loaded in pages.values())


def test_hars_lose_no_request_without_a_word(
    hars: tuple[dict[str, LoadedPage], dict[str, str]], shared_data: Path
) -> None:
    rows = (shared_data / "corpus" / "MANIFEST.tsv").read_text(encoding="utf-8").splitlines()
    entries = {Path(cells[0]).name: cells[6] for row in rows if (cells := row.split("\t"))}
    for name, loaded in hars[0].items():
        left_out = sum(int(n.rpartition(": ")[2]) for n in loaded.notes if n.startswith("left out"))
        assert len(loaded.page.resources) + left_out == int(entries[name]), name


def test_recorded_initiators_are_used_where_there_are_any(
    hars: tuple[dict[str, LoadedPage], dict[str, str]],
) -> None:
    shares = {
        name: loaded.page.describe().inferred / len(loaded.page.resources) for name, loaded in hars[0].items()
    }
    assert shares["2020_thegreenwebfoundation_chrome.har"] == 0
    assert shares["2018_wikipedia_obama_chrome.har"] < 0.02
    assert shares["2019_w3_org_wpt.har"] < 0.05
    assert shares["2010_w3_wpt.har"] > 0.9


def test_bodies_of_hars_cross_the_wire_with_their_recorded_size(
    hars: tuple[dict[str, LoadedPage], dict[str, str]],
) -> None:
    """Firefox' HAR of changba.com has every body, compressed by `Content-Encoding` where it was."""
    loaded = hars[0]["2021_changba_firefox_bodies.har"]
    assert len(loaded.bodies) == 71
    assert loaded.page.describe().wire_bytes == pytest.approx(1_900_000, rel=0.05)


def test_every_warc_is_read_with_its_bodies(shared_data: Path) -> None:
    pages, refused = opened(sorted((shared_data / "corpus" / "warc").glob("*.warc.gz")))
    assert (len(pages), refused) == (16, {})
    assert all(sizes_agree(loaded) for loaded in pages.values())
    assert pages["2012_wikipedia-main.warc.gz"].page.url == "http://en.wikipedia.org/wiki/Main_Page"
    assert pages["2020_lesfondamentaux.warc.gz"].page.resources[0].status == 307
    assert sum(len(loaded.page.resources) for loaded in pages.values()) > 1_100


def test_every_mahimahi_recording_is_read_from_its_own_start(shared_data: Path) -> None:
    folders = sorted((shared_data / "corpus" / "mahimahi" / "sites").iterdir())
    pages, refused = opened(folders)
    assert refused == {}
    assert {name: loaded.page.url for name, loaded in pages.items()} == {
        "2015_amazon": "http://www.amazon.com/",
        "2015_ebay": "http://www.ebay.com/",
        "2015_espn": "http://espn.go.com/",
        "2015_stackoverflow": "http://stackoverflow.com/",
        "2015_weather": "http://www.weather.com/",
        "2022_amazon": "https://www.amazon.com/",
    }
    assert all(sizes_agree(loaded) for loaded in pages.values())

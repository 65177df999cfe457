"""Public recordings of web pages: firstflight opens each as a page, or refuses it and says why."""

import csv
import json
from pathlib import Path
from typing import TypeAlias

import pytest
from accuracy_grid import measured_pages
from accuracy_pages import PAGES, file, source, text

from firstflight.errors import PageInputError
from firstflight.experiment.plan_file import resolve
from firstflight.pages import LoadedPage, load_page, open_pages
from firstflight.pages.corpus import anonymous

Opened: TypeAlias = tuple[dict[str, LoadedPage], dict[str, str]]
"""Pages by file name, and by file name the reason why a file was refused."""


def opened(paths: list[Path]) -> Opened:
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
def hars(shared_data: Path) -> Opened:
    return opened(sorted((shared_data / "corpus" / "har").rglob("*.har")))


@pytest.fixture(scope="module")
def warcs(shared_data: Path) -> Opened:
    return opened(sorted((shared_data / "corpus" / "warc").glob("*.warc.gz")))


@pytest.fixture(scope="module")
def manifest(shared_data: Path) -> dict[str, dict[str, str]]:
    """The rows of the manifest, by file."""
    with (shared_data / "corpus" / "MANIFEST.tsv").open(newline="", encoding="utf-8") as lines:
        return {row["file"]: row for row in csv.DictReader(lines, delimiter="\t")}


def test_the_profiles_of_the_accuracy_grid_are_of_their_recordings(
    hars: Opened, warcs: Opened, manifest: dict[str, dict[str, str]]
) -> None:
    """The committed profiles have the requests and sizes that today's importers read from the recordings.

    Times and order are not compared: the profiles keep those of the importers at the time of the measurement.
    At that time, request bodies counted only if the recording gave their size separately. Today the size in
    the header counts too, so requests may be longer now. After deriving a profile again (`python
    tests/validation/accuracy_pages.py CORPUS`), repeat predictions and measurements.
    """
    pages = {**hars[0], **warcs[0]}
    assert len(measured_pages()) == len(list(PAGES.glob("*.json"))) == 40
    for name in measured_pages():
        derived = anonymous(pages[Path(name).name].page, source(manifest[name]))
        now, then = requested(text(derived)), requested(file(name).read_text(encoding="utf-8"))
        assert [rest for rest, _ in now] == [rest for rest, _ in then], name
        assert all(ours >= theirs for (_, ours), (_, theirs) in zip(now, then, strict=True)), name


def requested(profile: str) -> list[tuple[tuple[str, ...], int]]:
    """The kind, MIME type and sizes of each request of a profile, and the bytes of the request; sorted.

    URLs are not compared. A profile without content numbers hosts and paths in the order of the requests.
    """
    keys = ("kind", "mime", "header_bytes", "body_bytes")
    resources = json.loads(profile)["resources"]
    return sorted((tuple(str(one.get(key)) for key in keys), one["request_bytes"]) for one in resources)


def test_every_har_but_the_one_without_its_document_is_read(
    hars: Opened,
) -> None:
    pages, refused = hars
    assert len(pages) == 97
    assert list(refused) == ["2017_lemonde_splash.har"]
    assert "the page itself is not in it" in refused["2017_lemonde_splash.har"]
    assert all(sizes_agree(loaded) for loaded in pages.values())


def test_hars_lose_no_request_without_a_word(hars: Opened, manifest: dict[str, dict[str, str]]) -> None:
    entries = {Path(name).name: int(row["entries"]) for name, row in manifest.items()}
    for name, loaded in hars[0].items():
        left_out = sum(int(n.rpartition(": ")[2]) for n in loaded.notes if n.startswith("left out"))
        assert len(loaded.page.resources) + left_out == entries[name], name


def test_recorded_initiators_are_used_where_there_are_any(
    hars: Opened,
) -> None:
    shares = {
        name: loaded.page.describe().inferred / len(loaded.page.resources) for name, loaded in hars[0].items()
    }
    assert shares["2020_thegreenwebfoundation_chrome.har"] == 0
    assert shares["2018_wikipedia_obama_chrome.har"] < 0.02
    assert shares["2019_w3_org_wpt.har"] < 0.05
    assert shares["2010_w3_wpt.har"] > 0.9


def test_bodies_of_hars_cross_the_wire_with_their_recorded_size(
    hars: Opened,
) -> None:
    """Firefox's HAR of changba.com has every body; it stores them as compressed by `Content-Encoding`."""
    loaded = hars[0]["2021_changba_firefox_bodies.har"]
    assert len(loaded.bodies) == 71
    assert loaded.page.describe().wire_bytes == pytest.approx(1_900_000, rel=0.05)


def test_every_warc_is_read_with_its_bodies(warcs: Opened) -> None:
    pages, refused = warcs
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


def test_every_mirror_is_read(shared_data: Path) -> None:
    folder = shared_data / "corpus" / "pages" / "tp5n"
    rows = [line.split("\t") for line in (folder / "PAGES.tsv").read_text().splitlines()]
    counts = {}
    for name, start in rows:
        (loaded,) = open_pages([f"{folder}/{name}#http://{start.partition('/')[2]}"])
        counts[name] = len(loaded.page.resources)
        assert len(loaded.bodies) == len(loaded.page.resources)
    assert len(counts) == 14
    assert min(counts.values()) >= 12
    assert counts["w3.org"] == 49


def test_links_as_recorded_are_read(shared_data: Path) -> None:
    folder = shared_data / "corpus" / "mahimahi" / "traces"
    links = sorted(link for link in folder.iterdir() if link.name != "README")
    assert len(links) == 12
    for link in links:
        trace = resolve({"down_trace": str(link)}).down_trace
        assert trace is not None
        assert 100_000 < trace.mean_bps < 20_000_000
        assert trace.lasts_ms >= 120_000

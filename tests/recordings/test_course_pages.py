"""The course's recordings of the paper's four pages, the logs of that browser, and the table of the paper."""

import json
from pathlib import Path
from typing import Any

import derive_profiles
import pytest
from synthetic_results import load_record

from firstflight.analysis import cell_pairs, summarize_pairs
from firstflight.course.observations import HEADER, observations
from firstflight.errors import PageInputError
from firstflight.pages import LoadedPage, embedded_names, load_page, open_pages, under
from firstflight.pages.readers.fetchlog import read_fetchlog

AMAZON, NYTIMES, WSJ, _ = range(4)
# Compressed sizes depend on the installed zlib. The sizes of headers and the byte offsets depend on them.
SIZES = ("body_bytes", "header_bytes", "at_byte")


@pytest.fixture(scope="module")
def course(shared_data: Path) -> list[LoadedPage]:
    """The four recorded pages, in the order of the paper's table."""
    return open_pages([str(shared_data / "course" / "Paper")])


@pytest.mark.parametrize(
    ("name", "transactions", "renames"),
    [
        ("httpwww.amazon.com", 68, 33),
        ("httpwww.nytimes.com", 54, 75),
        ("httpwww.wsj.com", 133, 44),
        ("httpen.wikipedia.orgwikiTransmission_Control_Protocol", 29, 19),
    ],
)
def test_the_course_logs_are_read_in_full(
    shared_data: Path, name: str, transactions: int, renames: int
) -> None:
    log = read_fetchlog(shared_data / "course" / "Paper.fetchlog" / name)
    assert len(log.transactions) == len(log.responses) == transactions
    assert len(log.renames) == renames


def test_the_client_logs_of_a_course_run_are_read_except_the_crashed_one(shared_data: Path) -> None:
    logs = [
        path for path in (shared_data / "course" / "run-2018" / "client").rglob("http*") if path.is_file()
    ]
    refused = []
    for path in logs:
        try:
            read_fetchlog(path)
        except PageInputError:
            refused.append(f"{path.parent.name}/{path.name}")
    assert len(logs) == 36
    assert refused == ["10-0-tfo-1/httpwww.gitlab.com"]


def test_the_course_directory_gives_its_four_pages_with_their_bodies(course: list[LoadedPage]) -> None:
    pages = [entry.page.describe() for entry in course]
    assert [(page.requests, page.hosts) for page in pages] == [(68, 10), (54, 28), (133, 45), (29, 4)]
    for entry in course:
        for index, path in entry.bodies.items():
            assert entry.page.resources[index].body_bytes == path.stat().st_size
        assert all(resource.status != 304 for resource in entry.page.resources)
    assert [len(entry.bodies) for entry in course] == [67, 41, 120, 29]


def test_redirects_of_the_course_pages_lead_to_their_targets(course: list[LoadedPage]) -> None:
    loaded = course[WSJ]
    first, second, third = loaded.page.resources[:3]
    assert [first.status, second.status, third.status] == [301, 301, 200]
    assert [r.initiator.via for r in (second, third) if r.initiator] == ["redirect", "redirect"]
    assert {first.kind, second.kind, third.kind} == {"document"}
    assert loaded.bodies[2].name == "index.html"
    assert 0 not in loaded.bodies


def test_the_log_s_charset_goes_with_the_type_and_none_is_made_up(course: list[LoadedPage]) -> None:
    page = course[NYTIMES].page
    mimes = {resource.url: resource.mime for resource in page.resources}
    assert mimes["http://www.nytimes.com/"] == "text/html; charset=utf-8"
    assert mimes["http://www.nytimes.com/packages/html/recommendations/ad.html"] == "text/html"


def test_another_visit_to_the_same_url_is_no_spare_answer(course: list[LoadedPage]) -> None:
    page = course[NYTIMES]
    recorded = {resource.url for resource in page.page.resources}
    stem = "http://markets.on.nytimes.com/research/modules/home/home.asp?"
    assert sum(url.startswith(stem) for url in recorded) == 1
    assert not [spare.url for spare in page.spare if spare.url.startswith(stem)]
    assert page.spare


def test_a_mirror_in_the_clear_has_clear_texts_beside_the_page_too(course: list[LoadedPage]) -> None:
    page = under("http", course[AMAZON])
    host = b"//images-na.ssl-images-amazon.com/"
    [beside] = [spare.file for spare in page.spare if spare.url == "http://www.amazon.com/index.html"]
    for file in (page.bodies[0], beside):
        assert b"http:" + host in file.read_bytes()
        assert b"https:" + host not in file.read_bytes()


def test_the_table_is_the_course_s_to_the_byte_but_for_the_sign(shared_data: Path) -> None:
    theirs = (shared_data / "course" / "run-2018" / "observations.txt").read_text().split("\n\n")[0] + "\n"
    page = "httpen.wikipedia.orgwikiTransmission_Control_Protocol\n"
    rows = [list(map(float, line.split())) for line in theirs.split(page)[1].splitlines()[:3]]
    loads = [
        load_record("wikipedia", rtt_ms, mode, plt_ms=plt_ms)
        for rtt_ms, tcp_ms, tfo_ms, _ in rows
        for mode, plt_ms in (("tcp", tcp_ms), ("tfo", tfo_ms))
    ]
    ours = observations(summarize_pairs(cell_pairs(loads)))
    expected = HEADER + page + theirs.split(page)[1].partition("http")[0]
    assert ours.replace("\t-", "\t") == expected
    assert [line.split("\t")[4].startswith("-") for line in ours.splitlines()[2:]] == [
        b > a for _, a, b, _ in rows
    ]


@pytest.mark.xfail(
    reason="URLs are canonical since the profiles were derived: two initiators of nytimes and the spelling "
    "of four missing images of amazon differ; derive them again together with the accuracy grid"
)
def test_deriving_the_profiles_again_gives_the_committed_ones(shared_data: Path, tmp_path: Path) -> None:
    assert derive_profiles.main(["--data", str(shared_data / "course"), "--out", str(tmp_path)]) == 0
    for name in embedded_names():
        derived = json.loads((tmp_path / f"{name}.json").read_text())
        committed = json.loads(load_page(name)[0].page.to_json())
        assert sizes_taken(derived) == pytest.approx(sizes_taken(committed), rel=0.02, abs=64)
        assert derived == committed


def sizes_taken(profile: dict[str, Any]) -> list[int]:
    """Removes the sizes from a profile, and returns them."""
    parts = [part for r in profile["resources"] for part in (r, r.get("initiator", {}))]
    return [part.pop(key, 0) for part in parts for key in SIZES]

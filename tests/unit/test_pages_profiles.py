"""The embedded profiles have the facts of the course's recording of the paper's pages."""

from pathlib import Path

import derive_profiles
import pytest

from firstflight.pages import Page, embedded_names, load_page

# requests, hosts, tcp.read_bytes, tcp.write_bytes
LOGGED = {
    "amazon": (68, 10, 667_681, 31_167),
    "nytimes": (54, 28, 562_401, 32_885),
    "wsj": (133, 45, 1_373_838, 73_479),
    "wikipedia": (29, 4, 317_295, 13_966),
}


def page(name: str) -> Page:
    return load_page(name)[0].page


@pytest.mark.parametrize("name", LOGGED)
def test_counts_and_bytes_are_those_of_the_log(name: str) -> None:
    found = page(name).describe()
    assert (found.requests, found.hosts, found.wire_bytes, found.request_bytes) == LOGGED[name]


@pytest.mark.parametrize("name", LOGGED)
def test_sizes_are_plausible(name: str) -> None:
    for resource in page(name).resources:
        assert 250 <= resource.request_bytes <= 2_500
        assert 300 <= resource.header_bytes <= 800
        assert resource.status not in (204, 304) or resource.body_bytes == 0


@pytest.mark.parametrize("name", LOGGED)
def test_live_waits_are_not_taken_over_as_idle_time(name: str) -> None:
    found = page(name)
    idle: list[float] = []
    for resource in found.resources:
        before = resource.initiator and idle[resource.initiator.resource]
        wait = resource.initiator.delay_ms if resource.initiator else 0.0
        idle.append((before or 0.0) + wait + resource.server_ms + resource.cpu_ms)
        assert resource.server_ms <= (500 if resource.kind == "document" else 100)
    assert max(ms for ms, resource in zip(idle, found.resources, strict=True) if resource.blocks_load) < 1_500


def test_beacons_after_the_load_event_do_not_hold_it_up() -> None:
    after = [resource.url for resource in page("amazon").resources if not resource.blocks_load]
    assert any("/uedata/" in url for url in after)
    assert len(after) == 13
    assert all(resource.blocks_load for resource in page("wikipedia").resources)


def test_the_names_are_those_of_the_papers_table() -> None:
    assert embedded_names() == list(LOGGED)


def test_deriving_without_the_recording_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert derive_profiles.main(["--data", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert "hint:" in capsys.readouterr().err

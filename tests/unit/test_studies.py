"""What the studies' own parts promise: made-up pages are as they are called, and gain what they must."""

import math
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import loss_study
import pytest
import short_rtt_study
from simulated import simulate, study_plan
from structure_study import BASE, Structure, made, structures
from synthetic_results import failed_record, load_record, write_journal
from what_if_study import PAPER_LINK, effect
from what_if_study import made as made_in_worlds

from firstflight.pages import LoadedPage, load_page

PLAN = str(Path(__file__).parents[2] / "studies" / "structure" / "plan.toml")
RTT_MS = 200.0


def saved_rtts(structure: Structure, **keys: object) -> float:
    page = LoadedPage(made("page", structure))
    plan = study_plan(PLAN, pages=["page"], rtt=RTT_MS, repeats="1", **keys)
    return simulate(plan, {"page": page})["page", RTT_MS].saved_ms / RTT_MS


@pytest.mark.parametrize("structure", structures().values(), ids=structures())
def test_a_made_up_page_is_as_it_is_called(structure: Structure) -> None:
    page = made("page", structure)
    depths = [0]
    for resource in page.resources[1:]:
        assert resource.initiator
        depths.append(depths[resource.initiator.resource] + 1)
    assert (len(page.resources), max(depths)) == (structure.objects + 1, structure.depth)
    assert len(page.origins) == min(structure.hosts, structure.objects + 1)
    assert [r.body_bytes for r in page.resources] == [structure.padding] + [
        structure.size
    ] * structure.objects


def test_fast_open_saves_the_handshakes_in_a_row_and_none_for_a_request_that_does_not_fit() -> None:
    one = replace(BASE, objects=1)
    assert saved_rtts(one) == pytest.approx(2, abs=0.1)
    assert saved_rtts(replace(one, hosts=1)) == pytest.approx(1, abs=0.1)
    assert saved_rtts(replace(one, hosts=1), keep_alive=False) == pytest.approx(2, abs=0.1)
    assert saved_rtts(replace(BASE, objects=24, depth=24)) == pytest.approx(4, abs=0.1)
    assert saved_rtts(replace(one, request=1_500)) == pytest.approx(0, abs=0.1)


def test_every_world_of_the_study_of_what_if_can_be_loaded_in() -> None:
    [wikipedia] = load_page("wikipedia")
    plan = str(Path(PLAN).parents[1] / "what_if" / "plan.toml")
    results = made_in_worlds(plan, {"wikipedia": wikipedia}, PAPER_LINK)
    gains = {
        (condition, name): effect(worlds, name, 100.0).gains[0]
        for condition, worlds in results.items()
        for name in worlds
    }
    assert [key for key, gain in gains.items() if not math.isfinite(gain)] == []
    assert gains["in the clear, warm cookies", "one-time-cookies=6"] == pytest.approx(0, abs=0.001)
    assert gains["in the clear, cold cookies", "unproven=14600"] > 0.05
    assert gains["TLS with the post-quantum share", "syn-payload=2,early-data"] > 0.05


@pytest.mark.parametrize("study", [loss_study, short_rtt_study], ids=lambda study: study.__name__)
def test_a_study_counts_no_attempt_that_a_later_one_made_void(study: ModuleType, tmp_path: Path) -> None:
    late = [load_record(mode=mode, plt_ms=9999.0) for mode in ("tcp", "tfo")]
    last = [failed_record(mode=mode) for mode in ("tcp", "tfo")]
    good = [load_record(mode=mode, block=1) for mode in ("tcp", "tfo")]
    [cell] = study.read(write_journal(tmp_path, [*late, *last, *good]))
    assert cell.pair.blocks == [1]

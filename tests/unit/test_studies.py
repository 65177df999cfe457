"""What the studies' own parts promise: made-up pages are as they are called, and gain what they must."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "scripts"))

from simulated import simulate, study_plan
from structure_study import BASE, Structure, made, structures

from firstflight.pages import LoadedPage

PLAN = str(Path(__file__).parents[2] / "plans" / "structure.toml")
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

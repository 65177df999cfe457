"""Tries every way out of a laboratory: as a foreign client, and as the user's program in `exec`.

A closed way proves something only if it is open elsewhere. So the same probe also runs outside a laboratory
on the same host, where each way must be open.
"""

from collections.abc import Mapping

import pytest
from baits import Host
from callers import Probed, probed
from probe import WAYS

KEPT_BY_EXEC = {
    "home",
    "file elsewhere",
    "writing",
    "environment",
    "writing to the terminal",
}
"""The ways that `exec` leaves open to the user's own program, as docs/exec.md promises."""
NEVER_OPEN = {"descriptors"}
"""Ways that are closed outside too; test_descriptors.py has a test that opens this one."""

pytestmark = pytest.mark.ordinary_user


@pytest.fixture(scope="module")
def found(emulator: object, host_with_ways_in: Host) -> Mapping[str, Probed]:
    """What the probe found in each place."""
    return {place: probed(place, host_with_ways_in) for place in ("client", "exec", "outside")}


@pytest.mark.parametrize("way", sorted(WAYS.keys() - NEVER_OPEN))
def test_the_way_is_open_outside(way: str, found: Mapping[str, Probed]) -> None:
    assert found["outside"].ways[way]


@pytest.mark.parametrize("way", WAYS)
def test_the_way_is_closed_to_a_client(way: str, found: Mapping[str, Probed]) -> None:
    assert found["client"].ways[way] == ""


@pytest.mark.parametrize("way", sorted(WAYS.keys() - KEPT_BY_EXEC))
def test_the_way_is_closed_to_the_users_program(way: str, found: Mapping[str, Probed]) -> None:
    assert found["exec"].ways[way] == ""


@pytest.mark.parametrize("way", sorted(KEPT_BY_EXEC))
def test_the_users_program_keeps_what_exec_promises(way: str, found: Mapping[str, Probed]) -> None:
    assert found["exec"].ways[way]


def test_a_client_has_no_rights_and_can_get_none(found: Mapping[str, Probed]) -> None:
    status = found["client"].status
    assert "0" not in status["Uid"].split()
    assert "0" not in status["Gid"].split()
    sets = {name: int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
    assert sets == dict.fromkeys(sets, 0)
    assert status["NoNewPrivs"] == "1"


def test_a_client_of_root_is_in_none_of_roots_groups(found: Mapping[str, Probed]) -> None:
    if found["outside"].status["Uid"].split()[0] == "0":
        assert found["client"].status["Groups"].split() == []


def test_a_client_leads_a_session_of_its_own(found: Mapping[str, Probed]) -> None:
    status = found["client"].status
    assert status["session"] == status["pid"]


def test_the_users_program_cannot_take_the_covers_away(found: Mapping[str, Probed]) -> None:
    sys_ptrace, sys_admin = 1 << 19, 1 << 21
    assert int(found["exec"].status["CapBnd"], 16) & (sys_ptrace | sys_admin) == 0

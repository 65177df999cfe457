"""Paths given by name or by file set keys of a plan; keys that the plan sets itself override them."""

from pathlib import Path

import pytest

from firstflight.errors import UsageError
from firstflight.experiment.plan_file import PlanFile, presets, read_plan_file, resolve
from firstflight.model.plan import PATH_KEYS


@pytest.mark.parametrize("name", presets())
def test_every_preset_is_a_path(name: str) -> None:
    plan = resolve({"path": name})
    assert plan.paths() == resolve(dict(presets()[name].values)).paths()
    assert plan.network == "", "a resolved plan says what its path is made of"


def test_presets_are_what_their_sources_say() -> None:
    assert resolve({"path": "paper"}).paths() == resolve({}).paths()
    assert resolve({"path": "course"}).topology == "star"
    of = {name: resolve({"network": name}) for name in presets()}
    kbit = {name: tuple(rate / 1000 for rate in plan.rates()[0] if rate) for name, plan in of.items()}
    assert {name: (*plan.rtt, *kbit[name]) for name, plan in of.items() if len(plan.rtt) == 1} == {
        "cable": (28, 5_000, 1_000),
        "dsl": (50, 1_500, 384),
        "3g": (300, 1_600, 768),
        "3g-slow": (400, 400, 400),
        "4g": (170, 9_000, 9_000),
        "fibre": (4, 20_000, 5_000),
        "satellite": (600, 20_000, 2_000),
        "wifi-lossy": (40, 30_000, 30_000),
        "wpt-2g": (800, 280, 256),
        "wpt-3g": (300, 1_600, 768),
        "wpt-3gfast": (150, 1_600, 768),
        "wpt-3gslow": (400, 400, 400),
        "wpt-4g": (170, 9_000, 9_000),
        "wpt-cable": (28, 5_000, 1_000),
        "wpt-dial": (120, 49, 30),
        "wpt-dsl": (50, 1_500, 384),
        "wpt-edge": (840, 240, 200),
        "wpt-fios": (4, 20_000, 5_000),
        "wpt-lte": (70, 12_000, 12_000),
        "lighthouse-slow-4g": (150, 1_638.4, 750),
        "lighthouse-slow-4g-devtools": (562.5, 1_474.56, 675),
        "lighthouse-3g": (300, 700, 700),
        "lighthouse-desktop": (40, 10_240, 10_240),
        "devtools-fast-4g": (60, 8_100, 1_350),
        "devtools-slow-4g": (150, 1_440, 675),
        "devtools-3g": (400, 400, 400),
    }
    assert of["wifi-lossy"].loss == 0.002
    assert all(plan.comment for plan in presets().values())


def test_a_network_has_an_old_name_and_one_of_the_two_is_enough() -> None:
    assert resolve({"path": "cable"}) == resolve({"network": "cable"})
    with pytest.raises(UsageError, match="so is path, which is its old name"):
        resolve({"path": "cable", "network": "cable"})


def test_keys_beside_a_path_stand_over_it() -> None:
    plan = resolve({"path": "cable", "rtt": "1,2"})
    assert (plan.rtt, plan.down) == ((1, 2), (5_000_000,))
    plan = resolve({}, PlanFile(values={"path": "cable", "up": "2mbit"}))
    assert (plan.rtt, plan.up) == ((28,), (2_000_000,))


def test_a_path_named_by_a_flag_is_in_place_of_the_plans_path() -> None:
    lossy_star = PlanFile(values={"topology": "star", "down": "1mbit", "loss": 0.1, "repeats": 3})
    plan = resolve({"path": "dsl"}, lossy_star)
    assert plan.paths() == resolve({"path": "dsl"}).paths()
    assert plan.repeats == 3


def test_a_path_file_is_found_from_the_plan_and_a_trace_from_the_path_file(tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "t").write_text("1\n")
    (tmp_path / "links" / "mobile.toml").write_text('rtt = 70\ndown_trace = "t"\nqueue = "codel"\n')
    (tmp_path / "plan.toml").write_text('path = "links/mobile.toml"\nloss = 0.01\n')
    [path] = resolve({}, read_plan_file(tmp_path / "plan.toml")).paths()
    assert (path.rtt_ms, path.down_bps, path.queue.name, path.loss) == (70, 12_000_000, "codel", 0.01)


def test_every_key_of_a_path_may_stand_in_its_file(tmp_path: Path) -> None:
    plan = resolve({"down": "1mbit"})
    keys = {key: value for key, value in plan.to_keys().items() if key in PATH_KEYS}
    assert set(keys) == set(PATH_KEYS)
    whole = [line for line in plan.to_toml().splitlines() if line.split(" ")[0] in PATH_KEYS]
    (tmp_path / "whole.toml").write_text("\n".join(whole))
    assert resolve({"path": str(tmp_path / "whole.toml")}).paths() == plan.paths()


BAD = {
    "rtx = 4": ("line 1, rtx: unknown key", "did you mean rtt?"),
    'down = "4mbit"\npages = "amazon"': ("line 2, pages: not a key of a path", "keys are rtt"),
    'path = "cable"': ("line 1, path: not a key of a path", "keys are rtt"),
    'rtt = 4\ndown = "quick"': ('line 2, down: "quick" is not a rate', "write a rate"),
    "rtt": ("is not TOML", "fix that line"),
}


@pytest.mark.parametrize("text", BAD)
def test_a_file_that_is_no_path_is_refused_at_its_line(text: str, tmp_path: Path) -> None:
    problem, hint = BAD[text]
    file = tmp_path / "path.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        resolve({"path": str(file)})
    assert str(file) in refused.value.message
    assert problem in refused.value.message
    assert hint in refused.value.hint


def test_a_path_that_is_nowhere_is_refused_and_the_presets_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        resolve({"path": "cabel"})
    assert refused.value.message == 'path: there is no preset "cabel", nor such a file'
    assert "cable" in refused.value.hint
    with pytest.raises(UsageError, match="path: 5 is neither a preset nor a file"):
        resolve({"path": 5})
    with pytest.raises(UsageError, match="cannot read"):
        resolve({"path": str(tmp_path)})

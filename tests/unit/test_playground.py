"""The playground's JavaScript modules give the same jobs, seeds and critical paths as Python.

They run in the Node.js that comes with playwright. `tests/validation/playground.py` tests the page itself, in
Chromium and with the simulator as WebAssembly.
"""

import json
import random
import shlex
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import build_playground
import playwright
import pytest

from firstflight import _core
from firstflight.analysis.critical_path.walk import critical_path
from firstflight.engines.engine import record_of
from firstflight.engines.simulate import simulated_job
from firstflight.experiment.schedule import Schedule
from firstflight.model.load import PlannedLoad
from firstflight.model.page import LoadedPage
from firstflight.model.plan import Plan
from firstflight.pages.profile import embedded_page, read_profile
from firstflight.pages.scheme import under

ROOT = Path(__file__).parents[2]
NODE = Path(playwright.__file__).parent / "driver/node"

RATES = ("64kbit", "256kbit", "1mbit", "4mbit", "100mbit", "unlimited")
CHOICES: dict[str, tuple[Any, ...]] = {
    "page": ("one", "amazon", "nytimes", "wsj", "wikipedia"),
    "rtt": (1, 7, 20, 100, 200, 333, 600),
    "down": RATES,
    "up": RATES,
    "loss": ("0", "0.001", "0.02", "0.2"),
    "queue": ("5p", "50p", "1000p", "unlimited", "codel", "pie"),
    "seed": (0, 1, 2, 4_711, 999_999),
    "scheme": ("http", "https"),
    "http": ("1.1", "2"),
    "baseline": ("tcp", "tfo"),
    "treatment": ("tfo", "tls12", "resumption", "early-data", "tfo+early-data", "quic", "quic-0rtt"),
}
SECURE = CHOICES["treatment"][1:]


def drawn(rng: random.Random) -> dict[str, Any]:
    """Random settings that `firstflight run` accepts too."""
    settings = {key: rng.choice(values) for key, values in CHOICES.items()}
    if settings["treatment"] in SECURE:
        return {**settings, "scheme": "https"}
    return {**settings, "http": "1.1"} if settings["scheme"] == "http" else settings


SETTINGS = [drawn(random.Random(number)) for number in range(60)]
"""Random settings, the same in every run of the tests."""

LOADS = [(number, settings) for number, settings in enumerate(SETTINGS) if settings["loss"] != "0.2"][:24]
"""The settings that are simulated. Those with a loss of 20 % are left out, because such loads take long."""


@cache
def page_of(name: str, scheme: str) -> LoadedPage:
    page = read_profile(ROOT / "playground/one.json") if name == "one" else embedded_page(name)
    return under(scheme, LoadedPage(page))


def planned(settings: dict[str, Any]) -> list[PlannedLoad]:
    """The baseline's and the treatment's load of a run's first block."""
    same = {"http": settings["http"], "scheme": settings["scheme"], "seed": settings["seed"], "repeats": 1}
    path = {key: settings[key] for key in ("rtt", "down", "up", "loss", "queue")}
    modes = tuple(dict.fromkeys((settings["baseline"], settings["treatment"])))
    plan = Plan.model_validate({"engine": "simulate", "mode": modes, **same, **path})
    [block] = Schedule(plan, [settings["page"]])[:1]
    by_mode = {load.mode: load for load in block.loads}
    return [by_mode[settings[side]] for side in ("baseline", "treatment")]


@cache
def simulated(number: int) -> tuple[PlannedLoad, LoadedPage, str, list[str]]:
    """The treatment's load: plan, page, record as text, and packets."""
    settings = SETTINGS[number]
    load = planned(settings)[1]
    page = page_of(settings["page"], settings["scheme"])
    record, packets = _core.Simulator(page.page.to_json()).trace(simulated_job(load, page))
    return load, page, record, packets


ALIKE = [
    "     1.000 sent    down #0 OneRtt:1200",
    "     2.000 sent    down #0 OneRtt:1200",
    "     2.000 lost    down #0 OneRtt:1200, packet 2",
    "     3.000 sent    down #0 OneRtt:1200",
    "    51.000 arrived down #0 OneRtt:1200",
    "    53.000 arrived down #0 OneRtt:1200",
]
"""A packet trace of QUIC packets with equal text. The second one is lost."""

FIRST_OF_QUEUE = [
    "     1.000 sent    down #0 OneRtt:1200",
    "     2.000 sent    down #0 OneRtt:1200",
    "     3.000 sent    down #0 OneRtt:1200",
    "    52.000 full    down #0 OneRtt:1200, packet 2",
    "    52.000 arrived down #0 OneRtt:1200",
    "    53.000 arrived down #0 OneRtt:1200",
]
"""The same, but a managed queue drops the second packet when its turn has come."""


@cache
def answer() -> dict[str, Any]:
    """The modules' answers to all questions of these tests, from one process."""
    loads = [simulated(number) for number, _ in LOADS]
    asked = {
        "jobs": [
            {"settings": settings, "mode": load.mode, "body_bytes": _body_bytes(settings)}
            for settings in SETTINGS
            for load in planned(settings)
        ],
        "loads": [
            {"record": json.loads(record), "page": _profile(page), "path": load.path.to_json(load.seed)}
            for load, page, record, _ in loads
        ],
        "traces": [*(packets for *_, packets in loads), ALIKE, FIRST_OF_QUEUE],
        "settings": SETTINGS,
        "addresses": [
            "#rtt=100000&page=moon&seed=1.5&x=1&mode=tcp",
            "#scheme=http&mode=tcp,quic",
            "",
            "#http=2&scheme=http",
        ],
    }
    probe = [NODE, ROOT / "tests/unit/playground_probe.mjs"]
    ran = subprocess.run(probe, input=json.dumps(asked), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def _body_bytes(settings: dict[str, Any]) -> int:
    return sum(resource.body_bytes for resource in page_of(settings["page"], "http").page.resources)


def _profile(page: LoadedPage) -> Any:  # noqa: ANN401
    return json.loads(page.page.to_json())


def test_a_job_and_its_seed_are_those_of_the_command_line() -> None:
    loads = [(settings, load) for settings in SETTINGS for load in planned(settings)]
    expected = [
        json.loads(simulated_job(load, page_of(settings["page"], settings["scheme"])))
        for settings, load in loads
    ]
    assert answer()["jobs"] == expected


def test_a_critical_path_is_the_one_that_reports_show() -> None:
    lengths = []
    for (number, _), found in zip(LOADS, answer()["paths"], strict=True):
        load, page, text, _ = simulated(number)
        record = record_of(load, None, json.loads(text), whose="simulator")
        expected = critical_path(record, page.page).segments
        assert [(one["request"], one["component"]) for one in found] == [
            (one.request, one.component) for one in expected
        ]
        assert [one["start"] for one in found] == pytest.approx([one.start_ms for one in expected])
        assert [one["end"] for one in found] == pytest.approx([one.end_ms for one in expected])
        lengths.append(len(found))
    assert max(lengths) > 20


def test_every_packet_of_a_load_is_read_and_what_became_of_it() -> None:
    fates = set()
    for (number, _), found in zip(LOADS, answer()["packets"][: len(LOADS)], strict=True):
        lines = simulated(number)[3]
        assert len(found) == sum(line.split()[1] == "sent" for line in lines)
        arrived = [packet for packet in found if packet["fate"] == "arrived"]
        assert len(arrived) == sum(line.split()[1] == "arrived" for line in lines)
        assert all(packet["arrived"] > packet["sent"] for packet in arrived)
        fates |= {packet["fate"] for packet in found}
    assert fates >= {"arrived", "lost", "full"}


def test_of_packets_that_read_the_same_the_one_that_was_lost_is_the_one_that_was_just_sent() -> None:
    found = answer()["packets"][len(LOADS)]
    assert [packet["fate"] for packet in found] == ["arrived", "lost", "arrived"]
    assert [packet["arrived"] for packet in found] == [51, None, 53]


def test_of_packets_that_read_the_same_the_one_that_a_managed_queue_dropped_is_named_by_its_number() -> None:
    found = answer()["packets"][len(LOADS) + 1]
    assert [packet["fate"] for packet in found] == ["arrived", "full", "arrived"]
    assert [packet["arrived"] for packet in found] == [52, None, 53]


def test_an_address_keeps_the_settings() -> None:
    assert answer()["addresses"] == [{"settings": settings, "refused": []} for settings in SETTINGS]
    assert answer()["settled"] == SETTINGS


def test_what_an_address_has_no_value_for_is_left_out_and_named() -> None:
    strange, in_the_clear, empty, http_2 = answer()["refused"]
    assert strange["refused"] == ["rtt=100000", "page=moon", "seed=1.5", "x=1", "mode=tcp"]
    assert strange["settings"] == empty["settings"]
    assert empty["refused"] == []
    assert in_the_clear["settings"]["scheme"] == "https"
    assert in_the_clear["refused"] == ["scheme=http"]
    assert http_2["settings"]["http"] == "1.1", "HTTP/2 is spoken over TLS alone, as firstflight run says"


def test_the_command_that_is_shown_plans_the_same_loads() -> None:
    for settings, command in zip(SETTINGS, answer()["commands"], strict=True):
        words = shlex.split(command)
        assert words[:2] == ["firstflight", "run"]
        flags = dict(zip(words[3::2], words[4::2], strict=True))
        keys = {flag.removeprefix("--"): value for flag, value in flags.items()}
        plan = Plan.model_validate(keys)
        [block] = Schedule(plan, [settings["page"]])[:1]
        assert {load.mode: load for load in block.loads} == {load.mode: load for load in planned(settings)}


def test_the_file_holds_every_module_once_and_its_script_is_one() -> None:
    page = build_playground.playground(b"\0asm").decode()
    script = page.split('<script type="module">')[1].split("</script>")[0]
    ran = subprocess.run(
        [NODE, "--check", "--input-type=module", "-"],
        input=script,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "import {" not in script
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert sorted(data["profiles"]) == ["amazon", "nytimes", "one", "wikipedia", "wsj"]
    assert len(data["paper"]) == 12

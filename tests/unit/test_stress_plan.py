"""`stress` without a laboratory: plans, search for the highest rate, journal, and refused settings."""

from pathlib import Path
from typing import Any

import pytest

from firstflight.cli import main
from firstflight.engines.lab import Lab
from firstflight.errors import UsageError
from firstflight.observer import Observer
from firstflight.results.files import locked
from firstflight.stress import Stress, StressPlan
from firstflight.stress.plan import cells
from firstflight.stress.rows import Row, row, savings
from firstflight.stress.run import JOURNAL, stored_plan


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--rates", "0"), 'rates: "0"'),
        (("--rates", "many"), 'rates: "many"'),
        (("--seconds", "-1"), 'seconds: "-1"'),
        (("--flood", "tsunami"), 'flood: "tsunami"'),
        (("--flood-rate", "nan"), 'flood-rate: "nan"'),
        (("--qlen", "0"), 'qlen: "0"'),
        (("--backlog", "65536"), 'backlog: "65536"'),
        (("--syn-cookies", "sometimes"), 'syn-cookies: "sometimes"'),
        (("--server", "no-such-program -x"), "there is no program no-such-program"),
        (("--server", "'open"), "is not a command"),
        (("--server", ""), "server"),
        (("--server", "python3 -m http.server", "--qlen", "5"), "qlen cannot be set for a command"),
        (("--flood", "plain"), "rates: auto"),
        (("--resume",), "--resume requires --out DIR"),
        (("--resume", "--out", "nowhere"), "nowhere holds no measurements"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_flag_is_refused_before_anything_starts(
    arguments: tuple[str, ...],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["stress", *arguments]) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert "hint: " in said.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_else_in_it_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.tex").touch()
    assert main(["stress", "--out", str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err


def test_the_modes_of_a_repeat_follow_each_other_in_an_order_that_varies() -> None:
    plan = StressPlan.model_validate({"rates": "100", "repeats": "20", "flood": "none,forged", "qlen": "5,9"})
    made = list(cells(plan, plan.rates))
    assert len({cell.name for cell in made}) == len(made) == 2 * 2 * 20 * 2
    pairs = list(zip(made[::2], made[1::2], strict=True))
    assert all((one.repeat, one.qlen, one.flood) == (two.repeat, two.qlen, two.flood) for one, two in pairs)
    assert {one.mode for one, _ in pairs} == {"tcp", "tfo"}


def test_auto_doubles_until_nobody_keeps_up_and_then_looks_closer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capacity = {"tcp": 2_500.0, "tfo": 3_200.0}
    slow_above(monkeypatch, capacity)
    stress = Stress(StressPlan(repeats=1), tmp_path / "out")
    stress.run(Observer())
    assert sorted({row["rate"] for row in stress.rows}) == [500, 1000, 2000, 2500, 3000, 3500, 4000]
    assert all(row["keeps_up"] == (row["rate"] <= capacity[row["mode"]]) for row in stress.rows)


def test_a_torn_line_is_measured_again_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = slow_above(monkeypatch, {"tcp": 1e9, "tfo": 1e9})
    folder = tmp_path / "out"
    plan = StressPlan.model_validate({"rates": "100,200", "repeats": "1"})
    Stress(plan, folder).run(Observer())
    assert len(asked) == 4
    journal = folder / JOURNAL
    journal.write_bytes(journal.read_bytes()[:-10])
    assert stored_plan(folder) == plan
    again = Stress(plan, folder, resume=True)
    again.run(Observer())
    assert (len(asked), len(again.rows)) == (5, 4)
    assert journal.read_bytes().count(b"\n") == 4


def test_savings_are_of_pairs_in_which_both_modes_kept_up() -> None:
    def row(mode: str, repeat: int, cpu_us: float, **fields: Any) -> Any:  # noqa: ANN401
        same = {"server": "builtin", "flood": "none", "qlen": 5, "backlog": 5, "syn_cookies": "on"}
        return {
            **same,
            "rate": 100.0,
            "repeat": repeat,
            "mode": mode,
            "cpu_us": cpu_us,
            "keeps_up": True,
            **fields,
        }

    rows = [
        *(
            row(mode, repeat, cpu_us * speed)
            for repeat, speed in enumerate((1, 2, 4, 1, 2, 4))
            for mode, cpu_us in (("tcp", 50), ("tfo", 40))
        ),
        row("tcp", 6, 50),
        row("tfo", 6, 500, keeps_up=False),
        row("tcp", 7, 50, flood="plain"),
        row("tfo", 7, 500, flood="plain"),
    ]
    at_rate, in_all = savings(rows)
    assert (at_rate["rate"], in_all["rate"], at_rate["pairs"]) == (100, None, 6)
    assert at_rate["saved"] == in_all["saved"]
    assert [at_rate["saved"][end] for end in ("median", "low", "high")] == pytest.approx([0.2, 0.2, 0.2])


def slow_above(monkeypatch: pytest.MonkeyPatch, capacity: dict[str, float]) -> list[str]:
    """Fakes laboratories whose server keeps up with at most `capacity` requests/s in each mode.

    Returns:
        The modes that were measured so far.
    """
    asked: list[str] = []

    def ask(lab: Lab, command: str, job: dict[str, Any], *, timeout_s: float) -> dict[str, Any]:
        asked.append(job["mode"])
        return record(40.0 if job["rate"] <= capacity[job["mode"]] else 400.0)

    monkeypatch.setattr(Lab, "__init__", lambda lab: None)
    monkeypatch.setattr(Lab, "ask", ask)
    return asked


def record(latency_ms: float) -> dict[str, Any]:
    """A laboratory's answer in which every client waited `latency_ms`."""
    counters = (
        "TCPFastOpenPassive",
        "TCPFastOpenPassiveFail",
        "TCPFastOpenListenOverflow",
        "ListenOverflows",
        "ListenDrops",
        "SyncookiesSent",
        "SyncookiesRecv",
        "TCPTimeouts",
    )
    way = {
        "packets": 7,
        "bytes": 700,
        "syns": 1,
        "syns_with_data": 0,
        "strangers_packets": 0,
        "strangers_bytes": 0,
    }
    late = {"late_p99_ms": 0.1}
    return {
        "requests": 1,
        "answered": 1,
        **dict.fromkeys(("timed_out", "broken", "wrong", "unsent", "flood_syns"), 0),
        "latency_ms": dict.fromkeys(("min", "p50", "p90", "p99", "p999", "max"), latency_ms),
        "elapsed_ms": 1000.0,
        **dict.fromkeys(("server_cpu_ms", "receive_cpu_ms", "arriving_ms"), 1.0),
        **dict.fromkeys(("server_used_ms", "server_stolen_ms", "clients_used_ms", "clients_stolen_ms"), 0.1),
        "flood_cpu_ms": 0.0,
        "own_core": True,
        "arrivals": late,
        "wire": [late, late],
        "up": way,
        "down": way,
        "sockets": {"syn_data_acked": 0, "not_acked": 0, "syn_again": 0},
        "server_kernel": dict.fromkeys(counters, 0),
        "server_kernel_in_all": dict.fromkeys(counters, 0),
        "proof": {"ok": True, "disagreements": []},
    }


def test_a_line_without_its_newline_is_kept_and_the_next_one_is_not_glued_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = slow_above(monkeypatch, {"tcp": 1e9, "tfo": 1e9})
    folder = tmp_path / "out"
    plan = StressPlan.model_validate({"rates": "100", "repeats": "1"})
    Stress(plan, folder).run(Observer())
    journal = folder / JOURNAL
    lines = journal.read_bytes().splitlines()
    journal.write_bytes(lines[0])
    again = Stress(plan, folder, resume=True)
    again.run(Observer())
    assert (len(asked), len(again.rows)) == (3, 2)


def test_two_runs_cannot_measure_into_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_above(monkeypatch, {"tcp": 1e9, "tfo": 1e9})
    plan = StressPlan.model_validate({"rates": "100", "repeats": "1"})
    first = Stress(plan, tmp_path / "out")
    with locked(tmp_path / "out"), pytest.raises(UsageError, match="another run is at work"):
        first.run(Observer())


def test_a_row_has_the_columns_that_are_typed() -> None:
    class Anything(dict[str, Any]):
        """A laboratory's record in which every number is 1."""

        def __missing__(self, key: str) -> object:
            numbers = {"late_p99_ms": 1.0, "ok": True, "disagreements": [], "wire": [{"late_p99_ms": 1.0}]}
            return numbers.get(key, 1)

    record = Anything()
    for name in (
        "latency_ms",
        "server_kernel",
        "server_kernel_in_all",
        "down",
        "up",
        "sockets",
        "arrivals",
        "proof",
    ):
        record[name] = Anything()
    plan = StressPlan.model_validate({"rates": "100"})
    [cell, *_] = cells(plan, plan.rates)
    assert row(plan, cell, record).keys() == Row.__annotations__.keys()

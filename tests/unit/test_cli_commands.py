import json
from pathlib import Path

import pytest
from engine_double import MEASURED, EngineDouble
from synthetic_results import load_record

from firstflight.cli import main
from firstflight.cli.plan_flags import default_text
from firstflight.engines.clients import Client
from firstflight.engines.emulate import Check
from firstflight.errors import LabError
from firstflight.model.plan import Plan
from firstflight.results import Journal

Shown = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_help_lists_the_commands(capsys: Shown) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.split("Commands:\n")[1].splitlines() if line.strip()] == [
        "run",
        "pages",
        "profile",
        "record",
        "report",
        "gate",
        "compare",
        "audit",
        "exec",
        "prove",
        "check",
        "stress",
        "doctor",
    ]


def test_the_help_of_run_has_a_flag_with_its_default_for_every_plan_key(capsys: Shown) -> None:
    assert main(["run", "--help"]) == 0
    # The help also breaks lines after hyphens.
    shown = " ".join(capsys.readouterr().out.split()).replace("- ", "-")
    for key, field in Plan.model_fields.items():
        if key == "treatment":
            continue  # Tables stand in files only.
        assert str(field.description) in shown
        if key != "pages":
            flag = f"--{key.replace('_', '-')}"
            assert f"{flag} " in shown or f"{flag}, --" in shown, "alone, or before its old name"
            assert not default_text(key) or f"[{default_text(key)}]" in shown


def test_version_is_told(capsys: Shown) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("firstflight 0.")


@pytest.mark.parametrize(
    ("call", "error", "hint"),
    [
        ([], "error: missing command", "hint: see firstflight --help"),
        (["fly"], "error: no such command 'fly'", "hint: see firstflight --help"),
        (["profile"], "error: missing argument 'PAGE'", "hint: see firstflight profile --help"),
        (["report", "none"], "error: none: no such folder", "hint: name a results folder"),
        (["pages", "none"], "error: none: no such file", "hint: check the path"),
    ],
)
def test_a_wrong_call_ends_with_2_an_error_and_a_hint(
    call: list[str], error: str, hint: str, capsys: Shown
) -> None:
    assert main(call) == 2
    first, second = capsys.readouterr().err.splitlines()[-2:]
    assert first.startswith(error)
    assert second.startswith(hint)


def test_pages_shows_a_row_per_page(capsys: Shown) -> None:
    assert main(["pages", "wikipedia", "amazon"]) == 0
    rows = [line.split()[:3] for line in capsys.readouterr().out.splitlines()]
    assert rows == [["page", "requests", "origins"], ["wikipedia", "29", "4"], ["amazon", "68", "10"]]


def test_pages_as_json_is_one_document(capsys: Shown) -> None:
    assert main(["pages", "--json"]) == 0
    pages = json.loads(capsys.readouterr().out)
    assert [page["name"] for page in pages] == ["amazon", "nytimes", "wsj", "wikipedia"]
    assert pages[0].keys() >= {
        "requests",
        "origins",
        "wire_bytes",
        "depth",
        "chain_bytes",
        "missing",
        "inferred",
    }


def test_a_profile_is_a_page_again(capsys: Shown) -> None:
    assert main(["profile", "wikipedia", "-o", "mine.json"]) == 0
    assert main(["pages", "mine.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["requests"] == 29


def test_a_report_is_made_anew_from_the_folder_alone(capsys: Shown) -> None:
    journal = Journal(Path("journal.jsonl"))
    for block in range(2):
        for mode in ("tcp", "tfo"):
            journal.append(load_record("wikipedia", 100.0, mode, block))
    assert main(["report", ".", "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"][0]["page"] == "wikipedia"
    assert Path("report.html").exists()


GOOD = {"name": "TUN device", "ok": True, "detail": "/dev/net/tun opens", "hint": ""}
BAD = {"name": "namespaces", "ok": False, "detail": "forbidden", "hint": "allow them"}


class LabDouble(EngineDouble):
    """A laboratory whose `doctor` checks give the results that a test sets."""

    def __init__(self, *checks: dict[str, object]) -> None:
        super().__init__()
        self._checks = checks

    def examine(self) -> list[Check]:
        return [Check(**check) for check in self._checks]  # type: ignore[arg-type]


def doctor(
    monkeypatch: pytest.MonkeyPatch, *checks: dict[str, object], arguments: tuple[str, ...] = ()
) -> int:
    monkeypatch.setattr("firstflight.cli.doctor.Emulator", lambda: LabDouble(*checks))
    clients = [Client("loader", "built in", "1.0"), Client("wget2", "", "")]
    monkeypatch.setattr("firstflight.cli.doctor.installed_clients", lambda: clients)
    return main(["doctor", *arguments])


def test_doctor_is_content_with_a_machine_that_has_what_is_needed(
    monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    assert doctor(monkeypatch, GOOD) == 0
    rows = [line.split("  ")[0] for line in capsys.readouterr().out.splitlines()]
    assert rows == ["check", "TUN device", "calibration", "client loader", "client wget2"]


def test_doctor_ends_with_1_and_the_mend_when_something_needed_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    assert doctor(monkeypatch, GOOD, BAD) == 1
    shown = capsys.readouterr()
    assert "error: namespaces: forbidden\nhint: allow them" in shown.err
    assert "calibration" not in shown.out


def test_doctor_as_json_is_one_document(monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    assert doctor(monkeypatch, GOOD, BAD, arguments=("--json",)) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is False
    assert [check["name"] for check in document["checks"] if not check["ok"]] == [
        "namespaces",
        "client wget2",
    ]


def test_doctor_says_that_the_laboratory_was_not_built(
    monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    def missing() -> EngineDouble:
        raise LabError("the laboratory program firstflight-lab is missing", "build it: make")

    monkeypatch.setattr("firstflight.cli.doctor.Emulator", missing)
    assert main(["doctor"]) == 1
    assert "hint: build it: make" in capsys.readouterr().err


def test_doctor_says_where_the_path_is_off(monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    monkeypatch.setitem(MEASURED, "down_mbps", {"asked": 4.0, "expected": 3.86, "measured": 2.0})
    assert doctor(monkeypatch, GOOD) == 0
    assert "down_mbps is 2, expected were 3.86" in capsys.readouterr().out

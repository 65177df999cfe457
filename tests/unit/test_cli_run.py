import json
import os
import signal
from pathlib import Path

import pytest
from engine_double import EngineDouble

from firstflight.cli import main
from firstflight.errors import LabError
from firstflight.experiment.folder import stored_plan
from firstflight.model.load import PlannedLoad

SMALL = ["wikipedia", "--rtt", "20", "--repeats", "2", "--jobs", "2"]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> EngineDouble:
    """Takes the place of the laboratory."""
    return use(EngineDouble(), monkeypatch)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("firstflight.experiment.setup.client_versions", lambda *_: {"loader": "1"})


def use(engine: EngineDouble, monkeypatch: pytest.MonkeyPatch) -> EngineDouble:
    monkeypatch.setattr("firstflight.experiment.setup.Emulator", lambda **clients: engine)
    return engine


def test_a_run_ends_with_the_table_and_where_the_report_lies(
    engine: EngineDouble, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *SMALL, "--out", "here"]) == 0
    shown = capsys.readouterr()
    assert "wikipedia" in shown.out
    assert shown.out.rstrip().endswith("report:  here/report.html")
    assert "4 loads planned" in shown.err
    assert not Path("here/figures").exists()
    assert Path("here/loads.parquet").exists()


def test_figures_are_drawn_in_the_forms_that_are_asked_for(
    engine: EngineDouble, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *SMALL, "--out", "here", "--figures", "svg,pdf"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("figures: here/figures\nreport:  here/report.html")
    assert {file.suffix for file in Path("here/figures").iterdir()} == {".svg", ".pdf"}
    assert all(file.read_bytes().startswith(b"%PDF") for file in Path("here/figures").glob("*.pdf"))


def test_a_form_that_no_figure_has_is_refused_before_anything_starts(
    engine: EngineDouble, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *SMALL, "--out", "here", "--figures", "svg,gif"]) == 2
    assert 'figures: "gif" is not a figure format\nhint: use svg, png, pdf, or off' in capsys.readouterr().err
    assert not Path("here").exists()


def test_a_signal_while_the_report_is_written_ends_a_run_cleanly(
    engine: EngineDouble, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("firstflight.cli.run.present", lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM))
    assert main(["run", *SMALL, "--out", "here"]) == 128 + signal.SIGTERM
    said = capsys.readouterr().err
    assert "error: stopped by SIGTERM before the report was written" in said
    assert "hint: continue with: firstflight run --resume --out here" in said


def test_the_results_go_into_a_folder_of_their_own_by_default(engine: EngineDouble) -> None:
    assert main(["run", *SMALL, "--quiet"]) == 0
    [folder] = Path("results").iterdir()
    assert (folder / "journal.jsonl").exists()


def test_json_prints_one_document_and_nothing_else(
    engine: EngineDouble, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *SMALL, "--out", "here", "--json", "--quiet"]) == 0
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert document["folder"] == "here"
    assert [(cell["page"], cell["rtt_ms"]) for cell in document["cells"]] == [("wikipedia", 20.0)]
    assert shown.err == ""


def test_without_a_page_the_four_of_the_paper_are_loaded(engine: EngineDouble) -> None:
    assert main(["run", "--repeats", "1", "--quiet", "--json"]) == 0
    assert {load.page for load in engine.made} == {"amazon", "nytimes", "wsj", "wikipedia"}
    assert len(engine.made) == 4 * 3 * 2


def test_flags_override_the_plan_file(engine: EngineDouble, tmp_path: Path) -> None:
    Path("mine.toml").write_text('pages = ["amazon"]\nrtt = [50]\nrepeats = 7\nkeep_alive = true\n')
    call = ["run", "wikipedia", "--plan", "mine.toml", "--repeats", "1", "--no-keep-alive", "--out", "here"]
    assert main(call) == 0
    plan = stored_plan(Path("here"))
    assert plan is not None
    assert (plan.pages, plan.rtt, plan.repeats, plan.keep_alive) == (("wikipedia",), (50.0,), 1, False)


def test_the_stored_plan_can_be_run_again(engine: EngineDouble) -> None:
    main(["run", *SMALL, "--down", "unlimited", "--queue", "64kB", "--out", "first"])
    assert main(["run", "--plan", "first/plan.toml", "--out", "second"]) == 0
    assert Path("first/plan.toml").read_text() == Path("second/plan.toml").read_text()


@pytest.mark.parametrize(
    "call",
    [
        ["--rtt", "fast"],
        ["--rtt=-1"],
        ["--down", "4"],
        ["--topology", "ring"],
        ["--loss", "2"],
        ["--mode", "quic"],
        ["--client", "lynx"],
        ["--engine", "dream"],
        ["--engine", "simulate", "--client", "chromium"],
        ["--cookies", "pool:1"],
        ["--cookies", "stale", "--mode", "tcp"],
        ["--repeats", "0"],
        ["--jobs", "many"],
        ["--seed", "-1"],
        ["--queue", "long"],
        ["--plan", "none.toml"],
        ["--resume"],
        ["--resume", "--out", "none"],
        ["--nonsense"],
        ["--rtt"],
        ["no-such-page"],
        ["wikipedia", "wikipedia"],
        ["page.har"],
        ["--out", "/proc/firstflight"],
        ["--out", "/dev/null"],
        ["--out", "/dev/null/x"],
    ],
    ids=" ".join,
)
def test_a_wrong_call_ends_with_2_an_error_and_a_hint_before_anything_starts(
    call: list[str], engine: EngineDouble, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *call]) == 2
    shown = capsys.readouterr()
    error, hint = shown.err.strip().splitlines()
    assert error.startswith("error: ")
    assert hint.startswith("hint: ")
    assert shown.out == ""
    assert (engine.made, engine.calibrated) == ([], [])
    assert not Path("results").exists()


def test_an_interrupted_run_reports_what_it_has_and_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(planned: PlannedLoad, number: int) -> None:
        if number == 3:
            os.kill(os.getpid(), signal.SIGINT)
            assert interrupted.stopped.wait(timeout=30)

    interrupted = use(EngineDouble(before=interrupt), monkeypatch)
    call = ["run", "wikipedia", "--rtt", "20", "--repeats", "2", "--jobs", "1", "--out", "here"]
    assert main(call) == 130
    shown = capsys.readouterr()
    assert shown.err.splitlines()[-2:] == [
        "error: stopped by SIGINT with 2 of 4 loads made",
        "hint: continue with: firstflight run --resume --out here",
    ]
    assert Path("here/report.html").exists()

    rest = use(EngineDouble(), monkeypatch)
    assert main(["run", "--resume", "--out", "here"]) == 0
    assert len(rest.made) == 2


def test_resume_with_flags_that_change_the_plan_is_refused(
    engine: EngineDouble, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["run", *SMALL, "--out", "here", "--quiet"])
    assert main(["run", "--resume", "--out", "here", "--repeats", "3"]) == 2
    assert "another plan (differs in: repeats)" in capsys.readouterr().err


def test_a_folder_that_holds_the_experiment_asks_for_resume(
    engine: EngineDouble, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["run", *SMALL, "--out", "here", "--quiet"])
    assert main(["run", *SMALL, "--out", "here"]) == 2
    assert "--resume" in capsys.readouterr().err


def test_a_laboratory_that_cannot_be_built_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(**clients: object) -> EngineDouble:
        raise LabError("no user namespaces", "allow them")

    monkeypatch.setattr("firstflight.experiment.setup.Emulator", refuse)
    assert main(["run", *SMALL]) == 1
    error, hint = capsys.readouterr().err.splitlines()
    assert error == "error: no user namespaces"
    assert hint.startswith("hint: allow them; or simulate: --engine simulate")


def test_an_experiment_without_a_good_load_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = {"status": "failed", "error": "no answer", "plt_ms": None}
    use(EngineDouble(load=lambda planned, number: failed), monkeypatch)
    assert main(["run", *SMALL]) == 1
    assert "without a load that succeeded: 2 cells" in capsys.readouterr().err


def test_no_colour_reaches_a_pipe_even_when_asked_for_none(
    engine: EngineDouble, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    main(["run", *SMALL, "--out", "here"])
    main(["run", "--rtt", "fast"])
    shown = capsys.readouterr()
    assert "\x1b[3" not in shown.out + shown.err


def test_two_browsers_are_not_one_program(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["run", *SMALL, "--compare", "client=chromium,firefox", "--browser", "/bin/true"]
    assert main(asked) == 2
    assert "chromium and firefox are two programs" in capsys.readouterr().err

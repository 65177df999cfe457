"""A run's files survive a full disk, a kill at any moment, and a second run in the same folder."""

import errno
import fcntl
import gzip
import json
import os
import random
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path

import pytest
from engine_double import EngineDouble, pages
from synthetic_results import load_record

from firstflight.errors import ExperimentError, UsageError
from firstflight.experiment import folder as run_folder
from firstflight.experiment.folder import default_folder, results_folder, stored_plan
from firstflight.experiment.run import run_experiment
from firstflight.experiment.schedule import Schedule
from firstflight.experiment.setup import threads
from firstflight.model.path import Trace
from firstflight.model.plan import Plan
from firstflight.observer import Observer
from firstflight.pages.bodies import BodyStore, Budget
from firstflight.pages.readers.warc import records
from firstflight.results import Journal, write_whole

PLAN = Plan(rtt=(20.0,), repeats=4, jobs=1)
NAMES = ["amazon", "wikipedia"]
PLANNED = sorted(load.load_id for block in Schedule(PLAN, NAMES) for load in block.loads)
TRACED = PLAN.model_copy(update={"down_trace": Trace("lte", "1\n2\n", 12_000_000, 2)})


class Heard(Observer):
    """Counts the loads that were reported as done, and keeps the warnings."""

    def __init__(self) -> None:
        self.done = 0
        self.warnings: list[str] = []

    def advance(self) -> None:
        self.done += 1

    def warn(self, message: str, hint: str = "") -> None:
        self.warnings.append(message)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Limits the size of every file. As on a full disk, the kernel writes what fits and then refuses."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_load_after_a_write_that_failed_half_way_has_a_line_of_its_own(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.append(load_record(block=1))
    size = journal.path.stat().st_size
    with largest_file(size + 100), pytest.raises(UsageError, match="File too large"):
        journal.append(load_record(block=2))
    assert journal.path.stat().st_size == size
    journal.append(load_record(block=3))
    assert [record["load"]["block"] for record in Journal(journal.path)] == [1, 3]


def test_a_disk_that_is_full_at_any_byte_loses_no_load_that_was_reported(tmp_path: Path) -> None:
    run_experiment(PLAN, pages(*NAMES), threads(PLAN, EngineDouble()), tmp_path / "whole")
    others = (file for file in (tmp_path / "whole").rglob("*") if file.is_file() and file.suffix != ".jsonl")
    smallest = max(file.stat().st_size for file in others)
    largest = (tmp_path / "whole" / "journal.jsonl").stat().st_size
    draw = random.Random(5)
    for number in range(8):
        size = draw.randrange(smallest, largest)
        folder, heard, engine = tmp_path / str(number), Heard(), EngineDouble()
        with largest_file(size), pytest.raises(ExperimentError, match="File too large") as full:
            run_experiment(PLAN, pages(*NAMES), threads(PLAN, engine), folder, observer=heard)
        assert f"firstflight run --resume --out {folder}" in full.value.hint
        content = (folder / "journal.jsonl").read_bytes()
        assert content.endswith(b"\n") or not content, size
        assert len({json.loads(line)["load"]["load_id"] for line in content.splitlines()}) == heard.done, size
        rest = EngineDouble()
        assert run_experiment(PLAN, pages(*NAMES), threads(PLAN, rest), folder, resume=True).left == 0
        assert sorted(record["load"]["load_id"] for record in Journal(folder / "journal.jsonl")) == PLANNED
        assert len(rest.made) == len(PLANNED) - heard.done


@pytest.mark.parametrize("plan", [PLAN, TRACED])
def test_a_run_killed_while_it_takes_its_folder_can_be_begun_again(tmp_path: Path, plan: Plan) -> None:
    moment = 0
    while killed_at(moment, partial(take, tmp_path / str(moment), plan)):
        folder = tmp_path / str(moment)
        is_begun = stored_plan(folder) is not None
        with results_folder(folder, plan, resume=is_begun):
            assert stored_plan(folder) == plan
        moment += 1
    assert moment > 3, "it was killed at every step that changes the folder"


def take(folder: Path, plan: Plan) -> None:
    with results_folder(folder, plan, resume=False):
        pass


def killed_at(moment: int, work: Callable[[], object]) -> bool:
    """Runs `work` in a child process that kills itself before its change number `moment` of the file system.

    Returns:
        Whether the child killed itself; false if `work` ended before that change.
    """
    if not (child := os.fork()):
        left = moment

        def audit(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal left
            is_write = event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_CREAT
            if is_write or event in {"os.mkdir", "os.rename", "os.truncate"}:
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1

        try:
            sys.addaudithook(audit)
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_a_folder_that_holds_more_than_a_killed_run_leaves_is_refused(tmp_path: Path) -> None:
    for name in (".lock", "thesis.tex"):
        (tmp_path / name).touch()
    with pytest.raises(UsageError, match="not empty and not a results folder"):
        take(tmp_path, PLAN)


def test_a_folder_that_is_refused_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UsageError, match="not empty"):
        take(tmp_path, PLAN)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_that_another_run_took_meanwhile_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = run_folder._check
    other = PLAN.model_copy(update={"rtt": (50.0,)})

    def checked(folder: Path, plan: Plan, *, resume: bool) -> None:
        check(folder, plan, resume=resume)
        monkeypatch.undo()
        take(folder, other)

    monkeypatch.setattr(run_folder, "_check", checked)
    with pytest.raises(UsageError, match="another plan"):
        take(tmp_path / "out", PLAN)
    assert stored_plan(tmp_path / "out") == other


def test_a_folder_that_cannot_be_locked_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(UsageError, match="cannot be locked: No locks available") as refused:
        take(tmp_path, PLAN)
    assert refused.value.hint


def interrupt() -> bool:
    """Sends this process a SIGINT, as Ctrl-C does."""
    os.kill(os.getpid(), signal.SIGINT)
    return True


def test_a_run_that_goes_on_with_another_kernel_or_client_warns(tmp_path: Path) -> None:
    plan = PLAN.model_copy(update={"client": "chromium"})
    stopped = EngineDouble(before=lambda planned, made: made == 3 and interrupt())
    run_experiment(
        plan, pages(*NAMES), threads(plan, stopped), tmp_path, clients={"chromium": "140", "curl": "7"}
    )
    file = tmp_path / "environment.json"
    environment = json.loads(file.read_text())
    file.write_text(json.dumps({**environment, "kernel": "5.4.0"}))
    heard = Heard()
    clients = {"chromium": "141", "curl": "8"}
    run_experiment(
        plan,
        pages(*NAMES),
        threads(plan, EngineDouble()),
        tmp_path,
        resume=True,
        clients=clients,
        observer=heard,
    )
    [warning] = heard.warnings
    assert f"kernel 5.4.0, now {os.uname().release}" in warning and "chromium 140, now 141" in warning
    assert "curl" not in warning


def test_a_run_that_goes_on_with_the_same_system_does_not_warn(tmp_path: Path) -> None:
    stopped = EngineDouble(before=lambda planned, made: made == 3 and interrupt())
    run_experiment(PLAN, pages(*NAMES), threads(PLAN, stopped), tmp_path)
    heard = Heard()
    run_experiment(PLAN, pages(*NAMES), threads(PLAN, EngineDouble()), tmp_path, resume=True, observer=heard)
    assert heard.warnings == []


def test_a_run_that_goes_on_takes_out_of_the_rtt_what_the_first_one_did(tmp_path: Path) -> None:
    first = EngineDouble(before=lambda planned, made: made == 3 and interrupt())
    run_experiment(PLAN, pages(*NAMES), threads(PLAN, first), tmp_path)
    file = tmp_path / "environment.json"
    file.write_text(file.read_text().replace('"bias_ms": 0.05', '"bias_ms": 0.07'))
    second = EngineDouble()
    run_experiment(PLAN, pages(*NAMES), threads(PLAN, second), tmp_path, resume=True)
    assert (first.known_bias_ms, second.known_bias_ms) == ([None], [0.07])
    calibrations = json.loads(file.read_text())["calibration"]
    assert [calibration["bias_ms"] for calibration in calibrations] == [0.07]


def test_a_run_that_goes_on_with_another_kernel_measures_the_relay_again(tmp_path: Path) -> None:
    first = EngineDouble(before=lambda planned, made: made == 3 and interrupt())
    run_experiment(PLAN, pages(*NAMES), threads(PLAN, first), tmp_path)
    file = tmp_path / "environment.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "kernel": "5.4.0"}))
    second = EngineDouble()
    run_experiment(PLAN, pages(*NAMES), threads(PLAN, second), tmp_path, resume=True)
    assert second.known_bias_ms == [None]


def test_a_kept_body_that_was_cut_short_is_written_again() -> None:
    file = BodyStore("archive").add([b"whole"], "entry")
    file.write_bytes(b"")
    assert BodyStore("archive").add([b"whole"], "entry") == file
    assert file.read_bytes() == b"whole"


def test_writing_files_in_threads_leaves_the_umask_to_the_others(tmp_path: Path) -> None:
    before, interval = os.umask(0o027), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        done = threading.Event()

        def write(name: str) -> None:
            while not done.is_set():
                write_whole(tmp_path / name, b"x")

        threads = [threading.Thread(target=write, args=(f"thread-{number}",)) for number in range(4)]
        for thread in threads:
            thread.start()
        for number in range(2_000):
            os.close(os.open(tmp_path / str(number), os.O_CREAT | os.O_WRONLY, 0o666))
        done.set()
        for thread in threads:
            thread.join()
        assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o640}
    finally:
        sys.setswitchinterval(interval)
        assert os.umask(before) == 0o027


def test_reading_an_archive_leaves_standard_error_to_the_other_threads() -> None:
    record = b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 2\r\n\r\nhi\r\n\r\n"
    errors = sys.stderr

    class Watched(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            assert sys.stderr is errors
            return super().read(size)

        def peek(self, size: int) -> bytes:
            return self.getvalue()[:size]

    for content in (3 * record, gzip.compress(record)):
        assert {found.type for found in records(Watched(content), "here", Budget("here"))} == {"resource"}


def test_two_runs_that_begin_in_one_second_have_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(5):
        default_folder().mkdir(parents=True)
    assert len(list(Path("results").iterdir())) == 5

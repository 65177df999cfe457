"""The conversation with a laboratory, held with small shell scripts in its place."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from engine_double import pages

from firstflight.engines.emulate import Emulator
from firstflight.engines.engine import Answer as LabAnswer
from firstflight.engines.engine import EngineStoppedError, LabJob, time_limit_ms
from firstflight.engines.lab import Lab
from firstflight.errors import LabError
from firstflight.model.load import PlannedLoad
from firstflight.model.path import Path as EmulatedPath
from firstflight.model.path import Queue
from firstflight.pages import LoadedPage
from firstflight.results.check import check_record

Script = Callable[[str], Path]

PATH = EmulatedPath("access", 100.0, 4_000_000, 256_000, Queue(packets=1000), 0.0)
PLANNED = PlannedLoad("wikipedia-1", 0, 0, 1, "wikipedia", PATH, "tfo", seed=7)


@pytest.fixture
def script(tmp_path: Path) -> Script:
    def write(body: str) -> Path:
        file = tmp_path / "lab"
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)
        return file

    return write


def test_a_job_is_one_line_and_the_answer_one_document(script: Script) -> None:
    lab = Lab(script('read job; echo "{\\"got\\": $job, \\"command\\": \\"$1\\"}"'))
    assert lab.ask("load", {"seed": 7}, timeout_s=30) == {"got": {"seed": 7}, "command": "load"}


def test_standard_input_stays_open_while_the_laboratory_works(script: Script) -> None:
    # `read` ends with 1 at the end of its input and with more than 128 when its time is up.
    lab = Lab(script('read job; bash -c "read -t 0.3 more"; echo "{\\"code\\": $?}"'))
    assert lab.ask("load", {}, timeout_s=30)["code"] > 128


def test_the_laboratory_sees_the_end_of_its_input_when_we_die(script: Script, tmp_path: Path) -> None:
    binary = script(f"read job; echo $$ > {tmp_path}/pid; read more; echo gone > {tmp_path}/gone")
    ask = f"from firstflight.engines.lab import Lab; Lab({str(binary)!r}).ask('load', {{}}, timeout_s=60)"
    with subprocess.Popen([sys.executable, "-c", ask]) as asking:
        assert _wait_for(tmp_path / "pid")
        asking.kill()
    assert _wait_for(tmp_path / "gone")


def test_a_refusal_is_an_error_with_its_hint(script: Script) -> None:
    refusal = '{"error": {"message": "no user namespaces", "hint": "allow them"}}'
    lab = Lab(script(f"echo '{refusal}'; exit 2"))
    with pytest.raises(LabError, match="no user namespaces") as refused:
        lab.ask("load", {}, timeout_s=30)
    assert refused.value.hint == "allow them"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "echo 'panicked at relay.rs:7' >&2; exit 101",
            "ended with code 101 .* printed: panicked at relay.rs:7",
        ),
        ("kill -9 $$", "was killed by signal 9"),
        ("echo '{\"plt_ms\": 12'", "gave no answer"),
        ("echo '[]'", "gave no answer"),
        ("echo '{\"error\": 7}'; exit 2", "gave no answer"),
        ("exit 0", "gave no answer"),
    ],
)
def test_a_laboratory_that_dies_is_an_error_with_its_last_words(script: Script, body: str, said: str) -> None:
    with pytest.raises(LabError, match=said) as died:
        Lab(script(body)).ask("load", {}, timeout_s=30)
    assert died.value.hint


def test_a_laboratory_that_hangs_is_killed(script: Script) -> None:
    with pytest.raises(LabError, match="was killed by signal 9"):
        Lab(script("exec sleep 600")).ask("load", {}, timeout_s=0.2)


def test_a_program_that_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="cannot start"):
        Lab(tmp_path / "none").ask("load", {}, timeout_s=30)


def test_stopping_kills_what_is_under_way_and_starts_nothing_more(script: Script, tmp_path: Path) -> None:
    lab = Lab(script(f"touch {tmp_path}/started; exec sleep 600"))
    outcome: list[type[Exception]] = []

    def ask() -> None:
        try:
            lab.ask("load", {}, timeout_s=600)
        except EngineStoppedError as stopped:
            outcome.append(type(stopped))

    asking = threading.Thread(target=ask)
    asking.start()
    assert _wait_for(tmp_path / "started")
    lab.stop()
    asking.join(timeout=30)
    assert outcome == [EngineStoppedError]
    with pytest.raises(EngineStoppedError):
        lab.ask("load", {}, timeout_s=30)


def test_a_laboratory_that_died_gives_no_load(script: Script) -> None:
    with pytest.raises(LabError, match="out of memory"):
        Emulator(script("echo 'out of memory' >&2; exit 1")).load(PLANNED, *pages("wikipedia"))


def test_what_the_relay_adds_to_the_rtt_is_measured_once_per_rtt_and_taken_out_of_every_load(
    script: Script, tmp_path: Path
) -> None:
    """A veth pair takes 0.25 ms, and a path of 100 ms takes 100.75 ms: the relay adds 0.5 ms."""
    (tmp_path / "floor.json").write_text('{"p50": 0.25}')
    (tmp_path / "calibrate.json").write_text('{"rtt_ms": {"p50": 100.75, "expected": 100}}')
    emulator = Emulator(script(f'read job; echo "$1 $job" >> {tmp_path}/jobs; cat {tmp_path}/$1.json'))
    slower = replace(PATH, down_bps=1_000_000)
    for path in (PATH, slower, replace(PATH, rtt_ms=0.0)):
        emulator.calibrate(path)
    for mode, path in (("tcp", PATH), ("tfo", slower), ("tfo", replace(PATH, rtt_ms=50.0))):
        with pytest.raises(LabError):
            emulator.load(replace(PLANNED, mode=mode, path=path), *pages("wikipedia"))
    asked = [line.split(" ", 1) for line in (tmp_path / "jobs").read_text().splitlines()]
    jobs = [(command, json.loads(job)) for command, job in asked]
    assert [command for command, _ in jobs] == ["floor", *4 * ["calibrate"], *3 * ["load"]]
    taken_out = [job["timing"].get("take_out_ms") for _, job in jobs[1:]]
    assert taken_out == [None, 0.5, 0.5, 0.0, 0.5, 0.5, 0.0]
    assert all(job["sparse"] for _, job in jobs[:5])


def test_what_the_relay_adds_is_taken_out_as_it_is_known(script: Script, tmp_path: Path) -> None:
    (tmp_path / "calibrate.json").write_text('{"rtt_ms": {"p50": 100.75, "expected": 100}}')
    emulator = Emulator(script(f'read job; echo "$1 $job" >> {tmp_path}/jobs; cat {tmp_path}/$1.json'))
    assert emulator.calibrate(PATH, 0.3).measured["bias_ms"] == 0.3
    with pytest.raises(LabError):
        emulator.load(PLANNED, *pages("wikipedia"))
    asked = [line.split(" ", 1) for line in (tmp_path / "jobs").read_text().splitlines()]
    assert [command for command, _ in asked] == ["calibrate", "load"]
    assert [json.loads(job)["timing"]["take_out_ms"] for _, job in asked] == [0.3, 0.3]


@pytest.mark.parametrize(
    ("queue", "rate_ms"),
    [
        (Queue(packets=33), 0),
        (Queue(packets=34), 2_000),
        (Queue(bytes=49_999), 0),
        (Queue(bytes=50_000), 2_000),
        (Queue(ms=99), 0),
        (Queue(ms=100), 2_000),
        (Queue(name="unlimited"), 2_000),
        (Queue(name="codel"), 0),
    ],
    ids=str,
)
def test_a_calibration_measures_no_rate_behind_a_queue_that_holds_less_than_the_path(
    script: Script, queue: Queue, rate_ms: int
) -> None:
    """A stream leaves such a link idle after each loss: the rate would seem lower than it is."""
    emulator = Emulator(script('read job; echo \'{"rtt_ms": {"p50": 100.75, "expected": 100}}\''))
    assert emulator.calibrate(replace(PATH, queue=queue), 0.3).rate_ms == rate_ms


def test_one_laboratory_at_a_time_keeps_processors_awake_and_none_when_the_user_forbids_it(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done"
    emulator = Emulator(script(f'read job; echo "$job" >> {tmp_path}/jobs; {wait}; exit 1'))

    def load() -> None:
        with pytest.raises(LabError):
            emulator.load(PLANNED, *pages("wikipedia"))

    def asked() -> list[bool]:
        jobs = tmp_path / "jobs"
        lines = jobs.read_text().splitlines() if jobs.exists() else []
        return [json.loads(line)["timing"]["keep_awake"] for line in lines]

    both = [threading.Thread(target=load) for _ in range(2)]
    both[0].start()
    assert _until(lambda: len(asked()) == 1)
    both[1].start()
    assert _until(lambda: len(asked()) == 2)
    (tmp_path / "go").touch()
    for one in both:
        one.join()
    load()
    monkeypatch.setenv("FIRSTFLIGHT_KEEP_AWAKE", "0")
    load()
    assert asked() == [True, False, True, False]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            '{"status": "ok", "plt_ms": "soon", "proof": {"ok": true}, "requests": [], "connections": []}',
            "answer is malformed: load: plt_ms is 'soon'",
        ),
        ('{"status": "ok", "plt_ms": 5.0, "requests": [], "connections": []}', "is ok without proof"),
    ],
)
def test_a_laboratory_whose_answer_cannot_be_used_gives_no_load(
    script: Script, answer: str, said: str
) -> None:
    with pytest.raises(LabError, match=said):
        Emulator(script(f"echo '{answer}'")).load(PLANNED, *pages("wikipedia"))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"status": "failed", "error": "no answer"}, "no answer"),
        ({"status": "ok", "plt_ms": "soon"}, "the client's answer is malformed: load: plt_ms is 'soon'"),
    ],
)
def test_what_a_foreign_client_gets_wrong_is_a_failed_load(
    script: Script, answer: LabAnswer, error: str
) -> None:
    class Client:
        def equip(self, job: LabJob, planned: PlannedLoad, page: LoadedPage) -> LabJob:
            return job

        def complete(self, found: LabAnswer, page: LoadedPage) -> LabAnswer:
            return {**found, **answer}

    ok = '{"status": "ok", "plt_ms": 5.0, "proof": {"ok": true}, "requests": [], "connections": []}'
    emulator = Emulator(script(f"echo '{ok}'"), {PLANNED.client: Client()})
    record = emulator.load(PLANNED, *pages("wikipedia"))
    assert check_record(record) == ""
    assert record["load"]["status"] == "failed"
    assert str(record["load"]["error"]).startswith(error)


def test_the_time_limit_grows_with_the_path_and_the_page() -> None:
    assert time_limit_ms(EmulatedPath("access", 0.0, None, None, Queue(packets=1), 0.0), 10**9) == 120_000
    assert time_limit_ms(PATH, 0) == 150_000
    assert time_limit_ms(PATH, 500_000) == 154_000


def _wait_for(file: Path) -> bool:
    return _until(file.exists)


def _until(holds: Callable[[], bool], seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.01)
    return False

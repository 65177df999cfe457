"""Real loads in real laboratories on the workers of a real Dask cluster, one of which is killed."""

import json
import signal
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

from experiment import Experiment
from program import Program, until

from dask_cluster import cluster


def test_emulated_loads_on_two_workers_one_of_which_is_killed_are_made_exactly_once(
    program: Program, tmp_path: Path
) -> None:
    experiment = Experiment(program, repeats=3)
    with cluster(tmp_path) as workers:
        workers.add(2, "--resources", "lab=1")
        run = experiment.start("--scheduler", workers.address)
        try:
            assert until(lambda: experiment.results() >= 2 or run.poll() is not None)
            workers.processes[0].send_signal(signal.SIGKILL)
            _, err = run.communicate(timeout=120)
        finally:
            run.kill()
            run.communicate()
        assert run.returncode == 0, err
    attempts = Counter(
        (line["load"]["load_id"], line["attempt"])
        for line in map(json.loads, (experiment.folder / "journal.jsonl").read_text().splitlines())
    )
    assert set(attempts.values()) == {1}
    assert experiment.made() == experiment.planned()
    assert all(record["proof"]["ok"] for record in experiment.records())
    environment = json.loads((experiment.folder / "environment.json").read_text())
    assert len(environment["workers"]) == 2
    assert environment["calibration"]


def test_a_worker_has_no_more_laboratories_than_it_has_of_the_resource(
    program: Program, tmp_path: Path
) -> None:
    experiment = Experiment(program, repeats=2)
    with cluster(tmp_path) as workers:
        workers.add(1, "--resources", "lab=1", "--nthreads", "4")
        worker = workers.processes[0].pid
        seen: list[int] = []
        run = experiment.start("--scheduler", workers.address)
        watcher = threading.Thread(target=_watch, args=(run, worker, seen))
        watcher.start()
        run.communicate(timeout=120)
        watcher.join()
    assert run.returncode == 0
    assert max(seen) == 1


def _watch(run: subprocess.Popen[str], worker: int, seen: list[int]) -> None:
    """Counts the laboratories of a worker until the run ends."""
    while run.poll() is None:
        children = Path(f"/proc/{worker}/task").glob("*/children")
        pids = [pid for file in children for pid in _read(file).split()]
        seen.append(sum(_read(Path(f"/proc/{pid}/comm")) == "firstflight-lab\n" for pid in pids))
        time.sleep(0.02)


def _read(file: Path) -> str:
    """The text of a file of /proc; empty where its thread or process has just ended."""
    try:
        return file.read_text()
    except OSError:
        return ""

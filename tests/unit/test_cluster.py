"""A plan on a Dask cluster of real processes, with an engine that needs no laboratory."""

from collections.abc import Iterator
from pathlib import Path

import dask
import pytest
from engine_double import pages
from worker_engine import TracedEngine

from dask_cluster import Workers, certificates, cluster, tls_cluster
from firstflight.errors import UsageError
from firstflight.experiment.recorder import Outcome
from firstflight.experiment.run import run_experiment
from firstflight.experiment.schedule import Schedule
from firstflight.experiment.setup import threads
from firstflight.experiment.workers.dask import Cluster
from firstflight.model.plan import Plan
from firstflight.results import Journal
from firstflight.results.tables import write_tables

NAMES = ["amazon", "wikipedia"]
PLAN = Plan(pages=("amazon", "wikipedia"), rtt=(20.0, 100.0), repeats=10)
PLANNED = sorted(load.load_id for block in Schedule(PLAN, NAMES) for load in block.loads)


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    """A Dask scheduler. Its workers can import the engine, since this folder is on their PYTHONPATH."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    with cluster(tmp_path) as found:
        yield found


def run(
    folder: Path,
    engine: TracedEngine,
    address: str,
    *,
    labs: bool = False,
    warnings: list[tuple[str, str]] | None = None,
) -> Outcome:
    told = [] if warnings is None else warnings
    workers = Cluster(address, engine, labs=labs, warn=lambda text, hint: told.append((text, hint)))
    try:
        return run_experiment(PLAN, pages(*NAMES), workers, folder)
    finally:
        workers.close()


def made(folder: Path) -> list[str]:
    return sorted(record["load"]["load_id"] for record in Journal(folder / "journal.jsonl").attempts())


def test_three_workers_one_of_which_dies_make_each_load_once_and_the_same_tables(
    tmp_path: Path, workers: Workers
) -> None:
    workers.add(3)
    engine = TracedEngine(tmp_path / "trace", fatal=PLANNED[40])
    outcome = run(tmp_path / "cluster", engine, workers.address)
    assert outcome == Outcome(planned=len(PLANNED), made=len(PLANNED), unproved=0, empty_cells=0)
    assert made(tmp_path / "cluster") == PLANNED
    assert engine.lines().count(PLANNED[40]) == 2
    assert sum(worker.poll() is not None for worker in workers.processes) == 1

    run_experiment(PLAN, pages(*NAMES), threads(PLAN, TracedEngine(tmp_path / "here")()), tmp_path / "alone")
    for folder in ("cluster", "alone"):
        write_tables(tmp_path / folder)
    for name in ("loads", "requests", "connections"):
        one, other = (tmp_path / folder / f"{name}.parquet" for folder in ("cluster", "alone"))
        assert one.read_bytes() == other.read_bytes()


def test_what_the_workers_run_on_is_in_the_environment(tmp_path: Path, workers: Workers) -> None:
    workers.add(1)
    run(tmp_path / "out", TracedEngine(tmp_path / "trace"), workers.address)
    assert '"workers": [' in (tmp_path / "out" / "environment.json").read_text()


def test_laboratories_need_workers_with_that_resource(tmp_path: Path, workers: Workers) -> None:
    workers.add(1)
    with pytest.raises(UsageError, match=r"no worker of .* has the resource lab") as refused:
        run(tmp_path / "out", TracedEngine(tmp_path / "trace"), workers.address, labs=True)
    assert "--resources lab=1" in refused.value.hint
    assert not (tmp_path / "out").exists()


def test_a_scheduler_without_workers_is_refused(tmp_path: Path, workers: Workers) -> None:
    with pytest.raises(UsageError, match="has no workers"):
        run(tmp_path / "out", TracedEngine(tmp_path / "trace"), workers.address)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense://here", "not an address"])
def test_a_scheduler_that_does_not_answer_is_refused_before_anything_starts(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firstflight.experiment.workers.dask._CONNECT_S", 1)
    with pytest.raises(UsageError, match=f"no Dask scheduler answers at {address}") as refused:
        run(tmp_path / "out", TracedEngine(tmp_path / "trace"), address)
    assert "dask scheduler" in refused.value.hint
    assert not (tmp_path / "out").exists()


def test_a_cluster_over_tls_makes_each_load_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    warnings: list[tuple[str, str]] = []
    with tls_cluster(tmp_path) as workers:
        assert workers.address.startswith("tls://")
        workers.add(1)
        engine = TracedEngine(tmp_path / "trace")
        outcome = run(tmp_path / "out", engine, workers.address, warnings=warnings)
        assert workers.processes[0].pid in engine.processes()
    assert outcome == Outcome(planned=len(PLANNED), made=len(PLANNED), unproved=0, empty_cells=0)
    assert made(tmp_path / "out") == PLANNED
    assert warnings == []


def test_a_scheduler_whose_certificate_is_of_another_authority_is_refused_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firstflight.experiment.workers.dask._CONNECT_S", 2)
    other = tmp_path / "other"
    other.mkdir()
    with (
        tls_cluster(tmp_path) as workers,
        dask.config.set(certificates(other)),
        pytest.raises(UsageError, match=r"(?i)certificate.verify.failed") as refused,
    ):
        run(tmp_path / "out", TracedEngine(tmp_path / "trace"), workers.address)
    assert "distributed.comm.tls.ca-file" in refused.value.hint


def test_tls_without_certificates_names_the_configuration_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"tls://127\.0\.0\.1:9") as refused:
        run(tmp_path / "out", TracedEngine(tmp_path / "trace"), "tls://127.0.0.1:9")
    assert "distributed.comm.tls.ca-file" in refused.value.hint


def test_plain_tcp_is_refused_where_the_configuration_requires_encryption(tmp_path: Path) -> None:
    with (
        dask.config.set({"distributed.comm.require-encryption": True}),
        pytest.raises(UsageError, match="encryption required") as refused,
    ):
        run(tmp_path / "out", TracedEngine(tmp_path / "trace"), "tcp://127.0.0.1:9")
    assert "tls://" in refused.value.hint


@pytest.mark.parametrize(
    ("address", "exposed"),
    [
        ("tcp://192.0.2.1:9", True),
        ("192.0.2.1:9", True),
        ("ws://192.0.2.1:9", True),
        ("tcp://127.0.0.1:9", False),
        ("tcp://[::1]:9", False),
        ("localhost:9", False),
        ("tls://192.0.2.1:9", False),
    ],
)
def test_plain_tcp_beyond_loopback_is_warned_of_before_anything_is_sent(
    tmp_path: Path, address: str, exposed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firstflight.experiment.workers.dask._CONNECT_S", 0.2)
    warnings: list[tuple[str, str]] = []
    with pytest.raises(UsageError):
        run(tmp_path / "out", TracedEngine(tmp_path / "trace"), address, warnings=warnings)
    assert [("unpickle" in text, "TLS" in hint) for text, hint in warnings] == [(True, True)] * exposed

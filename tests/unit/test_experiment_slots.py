import threading
from pathlib import Path
from typing import Any

import pytest

from firstflight.experiment.workers.threads import ConcurrencyLimit, cpu_share


def load(*, late: bool = False, late_p99_ms: float = 0.1) -> Any:  # noqa: ANN401
    return {
        "load": {},
        "requests": [],
        "connections": [],
        "proof": {},
        "relay": {"late": late, "late_p99_ms": late_p99_ms},
    }


def auto(busy: float = 0.2, cores: int = 2) -> ConcurrencyLimit:
    return ConcurrencyLimit("auto", late_bound_ms=2.0, busy=lambda: busy, cores=cores)


def test_a_number_of_jobs_stays_what_it_is() -> None:
    limit = ConcurrencyLimit(3, late_bound_ms=2.0)
    for _ in range(20):
        limit.note(load(late=True))
    assert (limit.open, limit.most) == (3, 3)


def test_auto_starts_with_a_slot_per_core_and_grows_by_one_a_round() -> None:
    limit = auto()
    assert limit.open == 2
    limit.note(load())
    assert limit.open == 2
    limit.note(load())
    assert limit.open == 3


def test_auto_grows_to_four_per_core_and_to_sixteen() -> None:
    for cores, most in ((1, 4), (2, 8), (64, 16)):
        limit = auto(cores=cores)
        for _ in range(500):
            limit.note(load())
        assert limit.open == most == limit.most


def test_auto_halves_when_a_relay_was_late_and_never_closes() -> None:
    limit = auto(cores=8)
    sizes = []
    for _ in range(5):
        limit.note(load(late=True))
        sizes.append(limit.open)
    assert sizes == [4, 2, 1, 1, 1]


def test_auto_does_not_grow_while_relays_have_little_room_or_the_cpu_is_busy() -> None:
    tight, busy = auto(), auto(busy=0.7)
    for _ in range(20):
        tight.note(load(late_p99_ms=1.5))
        busy.note(load())
    assert (tight.open, busy.open) == (2, 2)


def test_auto_halves_when_the_cpu_is_too_busy() -> None:
    limit = auto(busy=0.95)
    limit.note(load())
    limit.note(load())
    assert limit.open == 1


def test_a_slot_waits_for_one_to_be_given_back() -> None:
    limit = ConcurrencyLimit(1, late_bound_ms=2.0)
    assert limit.acquire()
    admitted = threading.Event()

    def wait() -> None:
        assert limit.acquire()
        admitted.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert not admitted.is_set()
    limit.release()
    waiting.join()
    assert admitted.is_set()


def test_closing_sends_away_those_who_wait() -> None:
    limit = ConcurrencyLimit(1, late_bound_ms=2.0)
    limit.acquire()
    answers: list[bool] = []
    waiting = threading.Thread(target=lambda: answers.append(limit.acquire()))
    waiting.start()
    limit.close()
    waiting.join()
    assert answers == [False]


def test_the_share_of_cpu_time_is_a_share() -> None:
    share = cpu_share()
    assert 0 <= share() <= 1


def test_loads_that_keep_cores_busy_get_no_more_slots_than_there_are_cores_for() -> None:
    for cores, most in ((1, 1), (2, 1), (4, 2), (64, 16)):
        limit = ConcurrencyLimit("auto", late_bound_ms=2.0, busy=lambda: 0.1, cores=cores, cores_per_load=2)
        for _ in range(500):
            limit.note(load())
        assert limit.open == limit.most == most


def test_niced_tasks_do_not_make_the_cpu_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(["cpu 100 100 0 100 0 0 0 0 0 0\ncpu0", "cpu 110 190 0 100 0 0 0 0 0 0\ncpu0"])
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: next(times))
    assert cpu_share()() == pytest.approx(0.1)

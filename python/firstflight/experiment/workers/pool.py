"""Worker processes of this machine that execute calls, for work that keeps a core busy.

Each is a Python interpreter, `python -m firstflight.experiment.workers.pool`. It reads calls from its
standard input and ends when that is closed, so it ends however this process dies. Calls and answers are
pickles, each preceded by its length. Only the process that started a worker can write to its standard input.
A Ctrl-C in the terminal does not reach the workers.

Why not loky (3.7.0, tried): 15 s after its parent was killed, its workers and trackers were still running.
"""

import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock
from typing import IO, Any, TypeVar, cast

from firstflight.engines.engine import EngineStoppedError
from firstflight.errors import ExperimentError

_TRIES = 2
_FEW = 8
"""Up to this many calls are made here: they finish before other processes would have started."""
_AHEAD = 8
"""Calls in progress or waiting, for each process."""

_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")


class Pool:
    """Processes that are started when there is work. Each is used by one thread at a time.

    Args:
        jobs: The number of processes.
    """

    def __init__(self, jobs: int) -> None:
        self._threads = ThreadPoolExecutor(jobs, thread_name_prefix="worker")
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self._workers = [_Worker() for _ in range(jobs)]
        for worker in self._workers:
            self._idle.put(worker)

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.stop()
        self._threads.shutdown(cancel_futures=True)

    def submit(self, call: Callable[[_Asked], _Answer], asked: _Asked, what: str) -> "Future[_Answer]":
        """Executes `call(asked)` in one of the processes.

        Args:
            call: A function. It, its argument and its result can be pickled.
            asked: Its argument.
            what: Names the work in the error that is raised if a process dies twice during it.
        """
        return self._threads.submit(self._run, call, asked, what)

    def _run(self, call: Callable[[_Asked], _Answer], asked: _Asked, what: str) -> _Answer:
        worker = self._idle.get()
        try:
            return worker.run(call, asked, what)
        finally:
            self._idle.put(worker)


def each(call: Callable[[_Asked], _Answer], several: Sequence[_Asked]) -> Iterator[_Answer]:
    """The results of `call` for `several`, in their order; if they are many, from one process per core."""
    if len(several) <= _FEW:
        yield from map(call, several)
        return
    jobs = cores()
    with Pool(jobs) as pool:
        waiting = iter(several)
        under_way: list[Future[_Answer]] = []
        for _ in several:
            while len(under_way) < _AHEAD * jobs and (asked := next(waiting, None)) is not None:
                under_way.append(pool.submit(call, asked, str(asked)))
            yield under_way.pop(0).result()


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Worker:
    """One process; if it is killed, it is started again."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._lock = Lock()

    def run(self, call: Callable[[_Asked], _Answer], asked: _Asked, what: str) -> _Answer:
        """Sends a call and waits for its answer.

        Raises:
            ExperimentError: The process died during the call, twice.
            EngineStoppedError: `stop` was called.
        """
        for _ in range(_TRIES):
            process = self._started()
            try:
                send(process.stdin, (call, asked))
                answer = receive(process.stdout)
            except (EOFError, OSError, pickle.UnpicklingError):
                _end(process)
                continue
            if isinstance(answer, BaseException):
                raise answer
            return cast(_Answer, answer)
        raise ExperimentError(
            f"a worker process died twice over {what} ({_ending(process.wait())})",
            "is memory short? use fewer: --jobs; then continue with --resume",
        )

    def stop(self) -> None:
        """Kills the process and starts no new one."""
        with self._lock:
            self._stopped = True
            if self._process:
                _end(self._process)

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._stopped:
                raise EngineStoppedError
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "firstflight.experiment.workers.pool"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    process_group=0,
                )
            return self._process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    with suppress(OSError, ValueError):  # A pipe that broke, or that the other thread has closed already.
        process.communicate()


def _ending(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"code {code}"


_LENGTH = struct.Struct("!Q")


def main() -> None:
    """Executes calls until standard input ends. What a call prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with suppress(EOFError, BrokenPipeError):
        while True:
            call, asked = cast(tuple[Callable[[Any], object], Any], receive(sys.stdin.buffer))
            try:
                answer = call(asked)
            except Exception as error:
                answer = error
            send(answers, answer)


def send(pipe: IO[bytes] | None, message: object) -> None:
    """Writes one message. Raises `OSError` when the other side has ended."""
    if pipe is None:
        raise AssertionError("started with pipes")
    content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(_LENGTH.pack(len(content)))
    pipe.write(content)
    pipe.flush()


def receive(pipe: IO[bytes] | None) -> object:
    """Reads one message. Raises `EOFError` when the other side has ended."""
    if pipe is None:
        raise AssertionError("started with pipes")
    return pickle.loads(_read(pipe, *_LENGTH.unpack(_read(pipe, _LENGTH.size))))


def _read(pipe: IO[bytes], length: int) -> bytes:
    content = pipe.read(length)
    if len(content) < length:
        raise EOFError
    return content


if __name__ == "__main__":
    main()

"""Things on the host that a program which escaped from a laboratory could reach: sockets, files, processes.

`probe.py` tries to reach each of them. All of them exist on the host, so a probe that finds nothing inside a
laboratory was stopped by the laboratory. `test_ways_out.py` runs the same probe outside as the control.
"""

import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from program import unavailable

SECRET = "CALLERS_SECRET_TOKEN"
"""Name of the environment variable that holds the caller's secret."""
PROBE = Path(__file__).with_name("probe.py")
_IPC_CREAT, _IPC_RMID = 0o1000, 0


@dataclass
class Host:
    """What a probe can find on the host.

    Attributes:
        spec: What a probe needs to know; the name of its terminal and its word are added later.
        environment: The environment of the probe's caller.
        heard: Words that the UDP server on the host received.
    """

    spec: dict[str, Any]
    environment: dict[str, str]
    heard: set[str] = field(default_factory=set)

    def told(self, **more: object) -> str:
        """The first argument of a probe: `spec` and `more` as JSON."""
        return json.dumps({**self.spec, **more})


@pytest.fixture(scope="session")
def host_with_ways_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """Creates everything that a probe tries to reach, and removes it at the end of the test session."""
    token = uuid.uuid4().hex
    with ExitStack() as ways:
        home = tmp_path_factory.mktemp("home")
        elsewhere = tmp_path_factory.mktemp("elsewhere")
        runtime = ways.enter_context(_folder(_writable_runtime() / f"firstflight-{token}"))
        display = ways.enter_context(_display(token))
        places = {
            "bus": runtime / "bus",
            "docker.sock": runtime / "docker.sock",
            "wayland-0": runtime / "wayland-0",
            "x11": display,
            "agent": elsewhere / "agent",
            "S.gpg-agent": home / "S.gpg-agent",
        }
        for place in places.values():
            ways.enter_context(_listening(str(place)))
        ways.enter_context(_listening(f"\0{token}"))
        for folder, name in ((home, "secret"), (elsewhere, "notes")):
            (folder / name).write_text("of the caller")
        environment = {SECRET: uuid.uuid4().hex, "HOME": str(home), "XDG_RUNTIME_DIR": str(runtime)}
        mark = f"mark-{uuid.uuid4().hex}"
        ways.enter_context(_process(mark, environment))
        key = int(token[:7], 16)
        ways.enter_context(_segment(key))
        shm_file = Path("/dev/shm") / token
        shm_file.touch()
        ways.callback(shm_file.unlink)
        server = ways.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        server.bind(("0.0.0.0", 0))
        spec = {
            "token": token,
            "sockets": {kind: str(place) for kind, place in places.items()},
            "abstract": token,
            "home_file": str(home / "secret"),
            "other_file": str(elsewhere / "notes"),
            "reversed_secret": environment[SECRET][::-1],
            "reversed_mark": mark[::-1],
            "shm_key": key,
            "shm_file": str(shm_file),
            "udp_port": server.getsockname()[1],
            "addresses": ["127.0.0.1"],
        }
        host = Host(spec, {**os.environ, **environment})
        ways.enter_context(_hearing(server, host.heard))
        yield host


def _writable_runtime() -> Path:
    """A folder where message buses put their sockets and into which this user may write."""
    for folder in (Path(f"/run/user/{os.getuid()}"), Path("/run")):
        if os.access(folder, os.W_OK):
            return folder
    return unavailable("neither /run/user/UID nor /run can be written to")


@contextmanager
def _folder(path: Path) -> Iterator[Path]:
    path.mkdir()
    try:
        yield path
    finally:
        for entry in path.iterdir():
            entry.unlink()
        path.rmdir()


@contextmanager
def _display(token: str) -> Iterator[Path]:
    """The path for the socket of an X display; creates its folder where there is none."""
    folder = Path("/tmp/.X11-unix")
    made = not folder.exists()
    if made:
        folder.mkdir()
        # The mode that X servers set, whatever the umask. The tests run again as an ordinary user, who needs
        # it.
        folder.chmod(0o1777)
    socket_file = folder / f"X{token}"
    try:
        yield socket_file
    finally:
        socket_file.unlink(missing_ok=True)
        if made:
            folder.rmdir()


@contextmanager
def _listening(address: str) -> Iterator[None]:
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(address)
        listener.listen(64)
        yield
    if not address.startswith("\0"):
        Path(address).unlink(missing_ok=True)


@contextmanager
def _process(mark: str, environment: dict[str, str]) -> Iterator[None]:
    """A process of the host that has the secret in its environment."""
    waiting = "import sys; print('up', flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", waiting, mark],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **environment},
    )
    try:
        assert process.stdout
        process.stdout.readline()
        yield
    finally:
        process.communicate()


@contextmanager
def _segment(key: int) -> Iterator[None]:
    library = ctypes.CDLL(None)
    segment = library.shmget(key, 4096, _IPC_CREAT | 0o600)
    assert segment >= 0
    try:
        yield
    finally:
        library.shmctl(segment, _IPC_RMID, None)


@contextmanager
def _hearing(server: socket.socket, heard: set[str]) -> Iterator[None]:
    """Adds each word that `server` receives to `heard`, until the context ends with an empty datagram."""

    def listen() -> None:
        while word := server.recv(100):
            heard.add(word.decode())

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield
    finally:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", ("127.0.0.1", server.getsockname()[1]))
        thread.join()

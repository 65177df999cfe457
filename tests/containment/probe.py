"""Tries every way out of a laboratory; prints as JSON, for each way, the evidence that it is open, or "".

`python probe.py SPEC [RESULT]`. The probe imports no module of firstflight, because it runs where these
cannot be read. SPEC is the JSON that `baits.Host.told` writes. It holds each secret reversed: a probe that
searches processes for the secret must not find its own arguments.
"""

import ctypes
import fcntl
import glob
import json
import os
import socket
import struct
import sys
import termios
from collections.abc import Callable, Iterator
from typing import Any

Spec = dict[str, Any]


def sockets(spec: Spec, kind: str) -> str:
    """Connects to a socket by its path, as clients of D-Bus, Docker, an agent or a display do."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.connect(spec["sockets"][kind])
    return "connected"


def abstract_socket(spec: Spec) -> str:
    """Connects to a socket in the abstract namespace, which belongs to a network namespace (unix(7))."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.connect("\0" + spec["abstract"])
    return "connected"


def home(spec: Spec) -> str:
    """Reads a file in the caller's home."""
    return _read(spec["home_file"])


def file_elsewhere(spec: Spec) -> str:
    """Reads a file of the caller's outside of home."""
    return _read(spec["other_file"])


def writing(spec: Spec) -> str:
    """Writes into the caller's folders."""
    for folder in (os.path.dirname(spec["home_file"]), os.path.dirname(spec["other_file"])):
        try:
            with open(os.path.join(folder, "written"), "w") as opened:
                opened.write("x")
        except OSError:
            continue
        return str(folder)
    return ""


def environment(spec: Spec) -> str:
    """Finds a token in its own environment."""
    secret = spec["reversed_secret"][::-1]
    return next((name for name, value in os.environ.items() if secret in value), "")


def environment_of_others(spec: Spec) -> str:
    """Finds the token in the environment of another process."""
    secret = spec["reversed_secret"][::-1].encode()
    for pid in _processes():
        # In `exec` the program's own environment is the caller's.
        if pid != os.getpid() and secret in _bytes(f"/proc/{pid}/environ"):
            return f"process {pid}"
    return ""


def processes_of_the_host(spec: Spec) -> str:
    """Finds a process of the host in /proc."""
    mark = spec["reversed_mark"][::-1].encode()
    return next((f"process {pid}" for pid in _processes() if mark in _bytes(f"/proc/{pid}/cmdline")), "")


def typing_into_the_terminal(spec: Spec) -> str:
    """Puts a character into the input of the caller's terminal, for a shell to read (TIOCSTI)."""
    for terminal in _terminals(spec):
        try:
            fcntl.ioctl(terminal, termios.TIOCSTI, b"x")
        except OSError:
            continue
        return f"descriptor {terminal}"
    return ""


def writing_to_the_terminal(spec: Spec) -> str:
    """Writes to the caller's terminal by its name."""
    with open(spec["terminal"], "wb", buffering=0) as terminal:
        terminal.write(b"\a")
    return "written"


def packet_to_the_host(spec: Spec) -> str:
    """Sends a UDP datagram and a handmade Ethernet frame to the host's server, which notes what arrives."""
    port, word = spec["udp_port"], spec["word"].encode()
    for address in spec["addresses"]:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            _try(lambda: probe.sendto(word, (address, port)))  # noqa: B023 (called at once)
    for _, name in socket.if_nameindex():
        _try(lambda: _send_frame(name, word, port))  # noqa: B023 (called at once)
    return ""


def shared_memory(spec: Spec) -> str:
    """Opens a System V segment, and looks for a POSIX one."""
    found = ctypes.CDLL(None).shmget(spec["shm_key"], 0, 0)
    if found >= 0:
        return f"segment {found}"
    return spec["shm_file"] if os.path.exists(spec["shm_file"]) else ""


def descriptors(_: Spec) -> str:
    """Lists the descriptors beyond the standard streams that this program inherited."""
    inherited = {int(name) for name in os.listdir("/proc/self/fd")} - {0, 1, 2}
    links = {number: _link(f"/proc/self/fd/{number}") for number in inherited}
    return " ".join(f"{number}:{link}" for number, link in links.items() if link and "/proc/" not in link)


WAYS: dict[str, Callable[[Spec], str]] = {
    "d-bus": lambda spec: sockets(spec, "bus"),
    "docker": lambda spec: sockets(spec, "docker.sock"),
    "wayland": lambda spec: sockets(spec, "wayland-0"),
    "x11": lambda spec: sockets(spec, "x11"),
    "ssh-agent": lambda spec: sockets(spec, "agent"),
    "gpg-agent": lambda spec: sockets(spec, "S.gpg-agent"),
    "abstract socket": abstract_socket,
    "home": home,
    "file elsewhere": file_elsewhere,
    "writing": writing,
    "environment": environment,
    "environment of others": environment_of_others,
    "processes of the host": processes_of_the_host,
    "typing into the terminal": typing_into_the_terminal,
    "writing to the terminal": writing_to_the_terminal,
    "packet to the host": packet_to_the_host,
    "shared memory": shared_memory,
    "descriptors": descriptors,
}


def status() -> dict[str, str]:
    """The kernel's status of this process (proc_pid_status(5)), its session and its process id."""
    with open("/proc/self/status") as lines:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in lines if ":\t" in line)
    return {**fields, "session": str(os.getsid(0)), "pid": str(os.getpid())}


def main(arguments: list[str]) -> int:
    spec = json.loads(arguments[0])
    # Read before the checks of the ways, since those open descriptors.
    found = {"descriptors": _outcome(descriptors, spec)}
    found |= {name: _outcome(way, spec) for name, way in WAYS.items() if name != "descriptors"}
    answer = json.dumps({"ways": found, "status": status()})
    if arguments[1:]:
        with open(arguments[1], "w") as result:
            result.write(answer)
    else:
        print(answer)
    return 0


def _outcome(way: Callable[[Spec], str], spec: Spec) -> str:
    try:
        return way(spec)
    except OSError:
        return ""


def _try(attempt: Callable[[], object]) -> None:
    try:
        attempt()
    except OSError:
        pass


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _bytes(file: str) -> bytes:
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError:
        return b""


def _read(file: str) -> str:
    with open(file) as opened:
        return opened.read()


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _terminals(spec: Spec) -> Iterator[int]:
    yield from (0, 1, 2)
    for name in ["/dev/tty", spec["terminal"], *glob.glob("/dev/pts/[0-9]*")]:
        try:
            yield os.open(name, os.O_RDWR | os.O_NOCTTY)
        except OSError:
            continue


def _send_frame(interface: str, payload: bytes, port: int) -> None:
    """One UDP packet to 127.0.0.1 in an Ethernet frame (packet(7)); a checksum of 0 is none (RFC 768)."""
    loopback = socket.inet_aton("127.0.0.1")
    udp = struct.pack("!4H", port, port, 8 + len(payload), 0) + payload
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, loopback, loopback)
    words = sum(struct.unpack("!10H", head))
    words = (words & 0xFFFF) + (words >> 16)
    head = head[:10] + struct.pack("!H", ~words & 0xFFFF) + head[12:]
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind((interface, 0x0800))
        raw.send(bytes(12) + b"\x08\x00" + head + udp)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

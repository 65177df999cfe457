"""Measures the queueing delay on a link that five TCP flows fill, on the real clock.

    python tests/validation/queue_check.py [--seconds 20]

This is RFC 8033's light traffic: five TCP flows towards the client over 10 Mbit/s, RTT 100 ms. It prints a
Markdown row per queue, without the first five seconds: the delay of UDP probes (one each 20 ms), the goodput
of the flows, and how many packets the relay dropped and marked. The program runs again inside `firstflight
exec`.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

RTT_MS = 100.0
RATE_MBPS = 10
FLOWS = 5
SETTLING_S = 5.0
GAP_S = 0.02
QUEUES = {
    "codel": ["--queue=codel"],
    "pie": ["--queue=pie"],
    "codel, ECN": ["--queue=codel", "--ecn"],
    "pie, ECN": ["--queue=pie", "--ecn"],
    "1000p": ["--queue=1000p"],
}


def main() -> int:
    """Prints the table.

    With `--inside`, prints the measurements of the probes and flows in one laboratory.
    """
    parser = argparse.ArgumentParser(description="Measure queueing delay under load.")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        json.dump(load(options.seconds), sys.stdout)
        return 0
    _say(
        "queue",
        "wait of probes: mean, median",
        "95th percentile",
        "goodput",
        "dropped",
        "marked",
        "relay late",
    )
    _say(*["---"] * 7)
    for name, flags in QUEUES.items():
        _say(f"`{name}`", *measure(flags, options.seconds))
    return 0


def measure(flags: Sequence[str], seconds: float) -> list[str]:
    """The cells of a row."""
    path = ["--mode=tcp", f"--rtt={RTT_MS:g}", f"--down={RATE_MBPS}mbit", "--up=unlimited", *flags]
    inside = [sys.executable, __file__, "--inside", f"--seconds={seconds:g}"]
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.json"
        firstflight = str(Path(sys.executable).with_name("firstflight"))
        program = [firstflight, "exec", "--quiet", f"--json={record}", *path, "--", *inside]
        output = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True).stdout
        relay = json.loads(record.read_text())["relay"]
    seen = json.loads(output)
    waits_ms = sorted(rtt_ms - RTT_MS for rtt_ms in seen["rtts_ms"])
    return [
        f"{statistics.fmean(waits_ms):.1f}, {statistics.median(waits_ms):.1f} ms",
        f"{waits_ms[len(waits_ms) * 95 // 100]:.1f} ms",
        f"{seen['goodput_mbps']:.2f} Mbit/s",
        str(relay["dropped"]),
        str(relay["marked"]),
        f"{relay['late_max_ms']:.1f} ms",
    ]


def load(seconds: float) -> dict[str, object]:
    """Fills the link with TCP flows and sends probes; returns the probes' RTTs and the goodput."""
    received = [0] * FLOWS
    for number in range(FLOWS):
        threading.Thread(target=_read, args=(received, number), daemon=True).start()
    time.sleep(SETTLING_S)
    before, start = sum(received), time.monotonic()
    rtts_ms = probe(seconds)
    goodput_mbps = (sum(received) - before) * 8 / (time.monotonic() - start) / 1e6
    return {"rtts_ms": rtts_ms, "goodput_mbps": goodput_mbps}


def probe(seconds: float) -> list[float]:
    """The round-trip times of the probes that came back, ms."""
    rtts_ms: list[float] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(_service("FIRSTFLIGHT_ECHO"))
        threading.Thread(target=_listen, args=(sock, rtts_ms), daemon=True).start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sock.send(time.monotonic_ns().to_bytes(8, "big"))
            time.sleep(GAP_S)
        return list(rtts_ms)


def _listen(sock: socket.socket, rtts_ms: list[float]) -> None:
    # The socket may be closed before the answer to the last probe arrives.
    with suppress(OSError):
        while datagram := sock.recv(64):
            rtts_ms.append((time.monotonic_ns() - int.from_bytes(datagram, "big")) / 1e6)


def _read(received: list[int], number: int) -> None:
    with socket.create_connection(_service("FIRSTFLIGHT_SOURCE")) as stream:
        while data := stream.recv(1 << 16):
            received[number] += len(data)


def _service(name: str) -> tuple[str, int]:
    host, _, port = os.environ[name].rpartition(":")
    return host, int(port)


def _say(*cells: str) -> None:
    sys.stdout.write(f"| {' | '.join(cells)} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

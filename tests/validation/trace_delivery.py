"""Compares the packets that cross a link each second with its delivery trace, on the real clock.

    python tests/validation/trace_delivery.py TRACE [--way down|up] [--seconds 40]

Inside `firstflight exec` it sends full packets to the laboratory's echo server, at 125 % of the highest rate
in the trace. The other direction is unlimited. It counts the packets that come back by the kernel's time of
arrival. The trace begins with the first packet. The first second is left out, because the link waits for its
first packet. It prints a row of a Markdown table.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from itertools import count
from pathlib import Path

from firstflight.model.path import parse_trace

_PACKET_BYTES = 1_500
_HEADER_BYTES = 28
_RTT_MS = 20
_TIMESTAMPS = 35
"""The socket option `SO_TIMESTAMPNS` (kernel's time of arrival, socket(7)), which Python does not name."""
_INSIDE = "TRACE_DELIVERY_RATE"


def main() -> int:
    """Prints the row."""
    parser = argparse.ArgumentParser(description="Compare what crosses a link with its trace.")
    parser.add_argument("trace", type=Path)
    parser.add_argument("--way", choices=["down", "up"], default="down")
    parser.add_argument("--seconds", type=int, default=40)
    options = parser.parse_args()
    promised = promise(options.trace, options.seconds)
    if rate := os.environ.get(_INSIDE):
        arrived = measure(float(rate), options.seconds, _RTT_MS if options.way == "up" else 0)
        sys.stdout.write(" ".join(map(str, arrived)))
        return 0
    answer = subprocess.run(
        [*_exec(options.trace, options.way), "--", sys.executable, *sys.argv],
        env={**os.environ, _INSIDE: str(1.25 * max(promised))},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    arrived = list(map(int, answer.stdout.split()))
    sys.stdout.write(row(f"{options.trace.name}, {options.way}", promised, arrived) + "\n")
    return 0


def promise(trace: Path, seconds: int) -> list[int]:
    """The packets that the trace delivers in each second."""
    parsed = parse_trace(str(trace))
    if parsed is None:
        raise SystemExit("off is no trace")
    times = list(map(int, parsed.text.split()))
    found: Counter[int] = Counter()
    for lap in range(seconds * 1000 // parsed.lasts_ms + 1):
        found.update((lap * parsed.lasts_ms + ms) // 1000 for ms in times)
    return [found[second] for second in range(seconds)]


def measure(packets_per_s: float, seconds: int, after_ms: int) -> list[int]:
    """The packets that come back in each second.

    `after_ms` is subtracted from their times: the delay between the link and their arrival.
    """
    host, port = os.environ["FIRSTFLIGHT_ECHO"].rsplit(":", 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_000_000)
        link.setsockopt(socket.SOL_SOCKET, _TIMESTAMPS, 1)
        link.connect((host.strip("[]"), int(port)))
        link.settimeout(5)
        start_ns = time.time_ns()
        end_ns = start_ns + seconds * 10**9
        threading.Thread(target=_send, args=(link, packets_per_s, start_ns, end_ns), daemon=True).start()
        found: Counter[int] = Counter()
        while (at_ns := _arrival(link) - after_ms * 10**6) < end_ns:
            found[(at_ns - start_ns) // 10**9] += 1
    return [found[second] for second in range(seconds)]


def row(name: str, promised: list[int], arrived: list[int]) -> str:
    """A row of the table, without the first second."""
    pairs = list(zip(promised, arrived, strict=True))[1:]
    off = [abs(came - should) for should, came in pairs]
    close = sum(apart <= max(1, 0.01 * should) for apart, (should, _) in zip(off, pairs, strict=True))
    total = sum(came for _, came in pairs) / sum(should for should, _ in pairs) - 1
    rates = [should * _PACKET_BYTES * 8 / 1e6 for should, _ in pairs]
    span = f"{min(rates):.2f} to {max(rates):.1f} Mbit/s, median {statistics.median(rates):.2f}"
    return (
        f"| {name} | {len(pairs)} s, {span} | {100 * total:+.3f} % | {close} of {len(pairs)} | {max(off)} |"
    )


def _exec(trace: Path, way: str) -> list[str]:
    other = "up" if way == "down" else "down"
    links = ["--rtt", str(_RTT_MS), f"--{way}-trace", str(trace), f"--{other}", "unlimited"]
    program = Path(sys.executable).with_name("firstflight")
    return [str(program), "exec", "--quiet", *links]


def _send(link: socket.socket, packets_per_s: float, start_ns: int, end_ns: int) -> None:
    payload = bytes(_PACKET_BYTES - _HEADER_BYTES)
    for number in count():
        due_ns = start_ns + round(number * 1e9 / packets_per_s)
        if due_ns > end_ns:
            return
        if (left_ns := due_ns - time.time_ns()) > 0:
            time.sleep(left_ns / 1e9)
        link.send(payload)


def _arrival(link: socket.socket) -> int:
    """The arrival time of the next packet, ns since the epoch."""
    _, [(_, _, stamp)], _, _ = link.recvmsg(_PACKET_BYTES, 64)
    seconds, nanoseconds = struct.unpack("qq", stamp)
    return int(seconds) * 10**9 + int(nanoseconds)


if __name__ == "__main__":
    sys.exit(main())

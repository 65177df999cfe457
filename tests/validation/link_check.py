"""Measures unsteady links on both clocks with UDP probes, and prints a Markdown row per link and clock.

    python tests/validation/link_check.py [--probes 10000] [--gap-us 2000]

The probes go to an echo server, evenly spaced. Both directions of a link have the same settings and
independent random numbers. On the real clock, this program runs again inside `firstflight exec`. The virtual
clock is the example `probes` of `crates/path`.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RTT_MS = 20.0
PROBE_BYTES = 100
LINKS: dict[str, dict[str, Any]] = {
    "loss 2 %, bursts of 5": {"loss": 0.02, "loss_burst": 5},
    "loss 2 %, bursts of 20 that lose 40 %": {"loss": 0.02, "loss_burst": 20, "loss_in_burst": 0.4},
    "jitter 10 ms": {"jitter": 10},
    "jitter 10 ms that reorders": {"jitter": 10, "reorder": True},
    "duplicate 5 %": {"duplicate": 0.05},
}
"""By name, the plan keys of each link."""
LAST_S = 1.0
"""How long the program waits for the last probes, s."""

Arrival = tuple[int, float]
"""A probe's number and its round-trip time, ms."""


def main() -> int:
    """Prints the table; with `--inside`, the arrivals of this machine's probes."""
    parser = argparse.ArgumentParser(description="Probe unsteady links on both clocks.")
    parser.add_argument("--probes", type=int, default=10_000)
    parser.add_argument("--gap-us", type=int, default=2_000)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        json.dump(probe(options.probes, options.gap_us / 1e6), sys.stdout)
        return 0
    _say("link", "clock", "lost", "in a row", "extra delay: mean, sd", "overtaken", "twice")
    _say(*["---"] * 7)
    for name, link in LINKS.items():
        for clock, ask in (("virtual", on_virtual_clock), ("real", on_real_clock)):
            _say(name, clock, *figures(ask(link, options.probes, options.gap_us), options.probes))
    return 0


def figures(arrivals: Sequence[Arrival], probes: int) -> list[str]:
    """The cells of a row."""
    times = Counter(number for number, _ in arrivals)
    first = dict(reversed(arrivals))
    extra_ms = [rtt_ms - RTT_MS for rtt_ms in first.values()]
    latest, overtaken = -1, 0
    for number in dict(arrivals):
        overtaken += number < latest
        latest = max(latest, number)
    came = [number in times for number in range(probes)]
    runs = sum(not here and before for before, here in zip([True, *came], came, strict=False))
    lost = came.count(False)
    return [
        f"{lost / probes:.2%}",
        f"{lost / runs:.1f}" if runs else "-",
        f"{statistics.fmean(extra_ms):.2f}, {statistics.pstdev(extra_ms):.2f} ms",
        f"{overtaken / len(times):.2%}",
        f"{sum(count > 1 for count in times.values()) / len(times):.2%}",
    ]


def on_virtual_clock(link: dict[str, Any], probes: int, gap_us: int) -> list[Arrival]:
    """The probes that come back in the simulator."""
    path = {"rtt_ms": RTT_MS, "loss": link.get("loss", 0), "jitter_ms": link.get("jitter", 0)}
    path |= {key: link[key] for key in ("reorder", "duplicate") if key in link}
    if "loss_burst" in link:
        path["burst"] = {"packets": link["loss_burst"], "loss": link.get("loss_in_burst", 1)}
    example = ["cargo", "run", "--quiet", "--release", "-p", "firstflight-path", "--example", "probes", "--"]
    lines = _output([*example, json.dumps(path), str(probes), str(gap_us)]).splitlines()
    return [(int(number), int(rtt_ns) / 1e6) for number, rtt_ns in map(str.split, lines)]


def on_real_clock(link: dict[str, Any], probes: int, gap_us: int) -> list[Arrival]:
    """The probes that come back in the laboratory."""
    flags = [f"--rtt={RTT_MS:g}", "--down=unlimited", "--up=unlimited"]
    for key, value in link.items():
        flag = f"--{key.replace('_', '-')}"
        flags.append(flag if value is True else f"{flag}={value}")
    inside = [sys.executable, __file__, "--inside", f"--probes={probes}", f"--gap-us={gap_us}"]
    program = [str(Path(sys.executable).with_name("firstflight")), "exec", "--quiet", *flags, "--", *inside]
    return [(number, rtt_ms) for number, rtt_ms in json.loads(_output(program))]


def probe(probes: int, gap_s: float) -> list[Arrival]:
    """Sends probes to the laboratory's echo server; returns those that came back, in order of arrival."""
    host, _, port = os.environ["FIRSTFLIGHT_ECHO"].rpartition(":")
    arrivals: list[Arrival] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect((host, int(port)))
        sock.settimeout(LAST_S)
        listener = threading.Thread(target=_listen, args=(sock, arrivals))
        listener.start()
        start_ns = time.monotonic_ns()
        for number in range(probes):
            due_ns = start_ns + round(number * gap_s * 1e9)
            time.sleep(max(0, due_ns - time.monotonic_ns()) / 1e9)
            stamp = number.to_bytes(8, "big") + time.monotonic_ns().to_bytes(8, "big")
            sock.send(stamp.ljust(PROBE_BYTES, b"\0"))
        listener.join()
    return arrivals


def _listen(sock: socket.socket, arrivals: list[Arrival]) -> None:
    while True:
        try:
            datagram = sock.recv(PROBE_BYTES)
        except TimeoutError:
            return
        number, sent_ns = (int.from_bytes(datagram[at : at + 8], "big") for at in (0, 8))
        arrivals.append((number, (time.monotonic_ns() - sent_ns) / 1e6))


def _say(*cells: str) -> None:
    sys.stdout.write(f"| {' | '.join(cells)} |\n")
    sys.stdout.flush()


def _output(program: Sequence[str]) -> str:
    return subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())

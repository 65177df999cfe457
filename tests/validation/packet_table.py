"""Prints the packets that open the document's connection in one load, as a Markdown table.

    python tests/validation/packet_table.py wikipedia --mode tfo --no-post-quantum

Every origin is under TLS. Times are those at the client's end of the wire, ms after the first SYN.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcapng import Packet, read

from firstflight.engines.clients.chromium.browser import find_browser
from firstflight.engines.clients.chromium.client import Chromium
from firstflight.engines.clients.command import ForeignClient
from firstflight.engines.emulate import Emulator
from firstflight.engines.engine import Answer, LabJob
from firstflight.model.load import PlannedLoad
from firstflight.model.path import Path as NetworkPath
from firstflight.model.path import Queue
from firstflight.model.units import parse_rate
from firstflight.pages import LoadedPage, open_pages, under

_HELLOS = {1: "ClientHello", 2: "ServerHello"}
_HANDSHAKE = 22
_QUEUE = Queue(packets=1000)


@dataclass(frozen=True)
class Captured:
    """The loader or `client`, with a capture of its packets; an `engines.clients.command.ForeignClient`."""

    file: Path
    client: ForeignClient | None = None

    def equip(self, job: LabJob, planned: PlannedLoad, page: LoadedPage) -> LabJob:
        """The job, with a capture."""
        job = {**job, "capture": str(self.file)}
        return self.client.equip(job, planned, page) if self.client else job

    def complete(self, answer: Answer, page: LoadedPage) -> Answer:
        """The answer, as the client completes it."""
        return self.client.complete(answer, page) if self.client else answer


def main() -> int:
    """Makes one load and prints its table."""
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "load.pcapng"
        record = _load(options, file)
        if record["load"]["status"] != "ok":
            sys.stderr.write(f"error: {record['load']['error']}\n")
            return 1
        packets = first_connection(read(file))
    sys.stdout.write("| ms | from | TCP | payload, bytes | |\n|---:|---|---|---:|---|\n")
    for row in rows(packets[: options.packets]):
        sys.stdout.write(f"| {' | '.join(row)} |\n")
    return 0


def first_connection(packets: Sequence[Packet]) -> list[Packet]:
    """The packets of the connection that was opened first, in both directions, in order of time."""
    opening = next(packet for packet in packets if packet.syn and not packet.ack)
    ends = {opening.source, opening.destination}
    ports = {opening.source_port, opening.destination_port}
    return [
        packet
        for packet in packets
        if {packet.source, packet.destination} == ends
        and {packet.source_port, packet.destination_port} == ports
    ]


def rows(packets: Sequence[Packet]) -> Iterator[tuple[str, ...]]:
    """The cells of each row: time, sender, flags, payload size, and the TLS message that begins there."""
    opened = packets[0]
    for packet in packets:
        flags = " ".join(name for name, is_set in (("SYN", packet.syn), ("ACK", packet.ack)) if is_set)
        cookie = " + cookie" if packet.fast_open else ""
        yield (
            f"{(packet.time_s - opened.time_s) * 1000:.1f}",
            "client" if packet.source == opened.source else "server",
            flags + cookie,
            f"{len(packet.payload):,}",
            _meaning(packet.payload),
        )


def _meaning(payload: bytes) -> str:
    """The name of a ClientHello or ServerHello, and the length of its record (RFC 8446, 5.1).

    Empty for encrypted payloads and for continuations of a record.
    """
    if len(payload) < 6 or payload[0] != _HANDSHAKE or payload[5] not in _HELLOS:
        return ""
    length = 5 + int.from_bytes(payload[3:5])
    part = f", the first {len(payload):,} of them" if length > len(payload) else ""
    return f"{_HELLOS[payload[5]]}, {length:,} bytes{part}"


def _load(options: argparse.Namespace, file: Path) -> Any:  # noqa: ANN401
    browser = Chromium(find_browser("")) if options.client == "chromium" else None
    engine = Emulator(clients={options.client: Captured(file, browser)})
    [page] = open_pages([options.page])
    rates = (parse_rate(options.down), parse_rate(options.up))
    path = NetworkPath("access", options.rtt, *rates, _QUEUE, 0.0)
    planned = PlannedLoad(
        load_id="captured",
        block=0,
        order=0,
        repeat=1,
        page=page.page.name,
        path=path,
        mode=options.mode,
        seed=1,
        client=options.client,
        scheme="https",
        post_quantum=options.post_quantum,
    )
    return engine.load(planned, under("https", page))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Print the packets that open a load.")
    parser.add_argument("page")
    parser.add_argument("--client", choices=("loader", "chromium"), default="loader")
    parser.add_argument("--mode", choices=("tcp", "tfo"), default="tfo")
    parser.add_argument("--post-quantum", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--rtt", type=float, default=100.0)
    parser.add_argument("--down", default="4mbit")
    parser.add_argument("--up", default="256kbit")
    parser.add_argument("--packets", type=int, default=12)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

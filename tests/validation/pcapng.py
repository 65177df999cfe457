"""Reads pcapng files as far as the tests need: IP packets with TCP headers (RFC 9293, 791, 8200)."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_RAW_IP = 101
_FAST_OPEN = 34
_TCP = 6


@dataclass(frozen=True)
class Packet:
    """A TCP segment.

    `time_s` is wall-clock time. `fast_open` is the cookie in the Fast Open option, `None` without that
    option.
    """

    time_s: float
    source: str
    source_port: int
    destination: str
    destination_port: int
    syn: bool
    ack: bool
    payload: bytes
    fast_open: bytes | None
    ece: bool
    cwr: bool
    is_ect: bool
    """Whether its IP header says that the sender supports ECN (RFC 3168)."""


def read(file: Path) -> list[Packet]:
    """Every TCP segment in `file`. Fails if the file is not a well-formed pcapng of raw IP packets."""
    blocks = list(_blocks(file.read_bytes()))
    assert [kind for kind, _ in blocks[:2]] == [_SECTION, _INTERFACE]
    assert {kind for kind, _ in blocks[2:]} <= {_PACKET}
    magic, major = struct.unpack_from("=IH", blocks[0][1])
    assert (magic, major) == (0x1A2B3C4D, 1)
    [link_type] = struct.unpack_from("=H", blocks[1][1])
    assert link_type == _RAW_IP
    units_per_s = 10 ** _option(blocks[1][1][8:], 9)[0]
    packets = (_packet(body, units_per_s) for _, body in blocks[2:])
    return [packet for packet in packets if packet]


def _blocks(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("=II", data, at)
        assert length % 4 == 0
        assert struct.unpack_from("=I", data, at + length - 4) == (length,)
        yield kind, data[at + 8 : at + length - 4]
        at += length


def _option(options: bytes, wanted: int) -> bytes:
    at = 0
    while True:
        code, length = struct.unpack_from("=HH", options, at)
        if code == wanted:
            return options[at + 4 : at + 4 + length]
        at += 4 + length + -length % 4


def _packet(body: bytes, units_per_s: int) -> Packet | None:
    _, high, low, captured, original = struct.unpack_from("=5I", body)
    assert captured == original
    ip = body[20 : 20 + captured]
    if ip[0] >> 4 == 6:
        protocol, source, destination, tcp = ip[6], ip[8:24], ip[24:40], ip[40:]
        traffic_class = ip[1] >> 4
        assert struct.unpack_from(">H", ip, 4) == (len(tcp),)
    else:
        protocol, source, destination, tcp = ip[9], ip[12:16], ip[16:20], ip[(ip[0] & 15) * 4 :]
        traffic_class = ip[1]
        assert struct.unpack_from(">H", ip, 2) == (len(ip),)
    if protocol != _TCP:
        return None
    assert _sum(source + destination + struct.pack(">II", len(tcp), _TCP) + tcp) == 0xFFFF
    header = (tcp[12] >> 4) * 4
    return Packet(
        ((high << 32) + low) / units_per_s,
        str(ip_address(source)),
        int.from_bytes(tcp[:2]),
        str(ip_address(destination)),
        int.from_bytes(tcp[2:4]),
        bool(tcp[13] & 0x02),
        bool(tcp[13] & 0x10),
        tcp[header:],
        _fast_open(tcp[20:header]),
        bool(tcp[13] & 0x40),
        bool(tcp[13] & 0x80),
        bool(traffic_class & 3),
    )


def _sum(data: bytes) -> int:
    """The one's complement sum of 16-bit words (RFC 1071).

    With a correct checksum included, all its bits are set.
    """
    words = struct.unpack(f">{(len(data) + 1) // 2}H", data + bytes(len(data) % 2))
    return sum(words) % 0xFFFF or 0xFFFF


def _fast_open(options: bytes) -> bytes | None:
    while options and options[0] != 0:
        if options[0] == 1:
            options = options[1:]
        elif options[0] == _FAST_OPEN:
            return options[2 : options[1]]
        else:
            options = options[options[1] :]
    return None

"""The part of the Protocol Buffers wire format that Mahimahi's recordings use: nested messages and varints.

Our own forty lines instead of the `protobuf` package: the messages have nine fields, and without its
compiler a descriptor written by hand would be as long as this.
"""

from __future__ import annotations

from collections.abc import Iterator

# https://protobuf.dev/programming-guides/encoding/
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10


class WireError(ValueError):
    """The data is no Protocol Buffers message, or its end is missing."""


def fields_of(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field of a message: bytes for strings and messages, else a number.

    Raises:
        WireError: At the first byte that does not fit.
    """
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        value: int | bytes
        if kind == _VARINT:
            value, at = _varint(data, at)
        elif kind == _BYTES:
            length, at = _varint(data, at)
            value, at = _piece(data, at, length)
        elif kind in (_FIXED32, _FIXED64):
            piece, at = _piece(data, at, 4 if kind == _FIXED32 else 8)
            value = int.from_bytes(piece, "little")
        else:
            raise WireError(f"byte {at}: no field begins there")
        yield key >> 3, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, at + index + 1
    raise WireError(f"byte {at}: a number does not end")


def _piece(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    if at + length > len(data):
        raise WireError(f"byte {at}: {length} bytes announced, {len(data) - at} left")
    return data[at : at + length], at + length

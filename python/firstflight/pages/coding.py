"""Content codings of HTTP (RFC 9110 section 8.4.1): gzip, deflate, br and zstd, in bounded memory."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import IO, cast

import brotli  # type: ignore[import-untyped]
import zstandard

MOST_CODINGS = 5
"""Of one body; as in curl (`MAX_ENCODE_STACK`). Each costs memory, and time for all that the others give."""
# Of a piece of input, no more output than this is made at once.
_PIECE = 65_536
# Larger bodies are encoded once: trying levels would take longer than it is worth.
_MOST_TRIED = 1 << 23
_Counted = Callable[[Iterable[bytes]], Iterator[bytes]]


class CodingError(ValueError):
    """The data is not in the coding it is said to be in, or its end is missing."""


def codings_of(content_encoding: str) -> list[str]:
    """The codings that a `Content-Encoding` lists, in the order applied; without identity."""
    names = (name.strip().lower().removeprefix("x-") for name in content_encoding.split(","))
    return [name for name in names if name not in ("", "identity", "utf-8", "none")]


def decoded(chunks: Iterable[bytes], codings: list[str], counted: _Counted = iter) -> Iterator[bytes]:
    """Undoes `codings`, the last one first, piece by piece.

    Args:
        chunks: The data.
        codings: In the order applied.
        counted: What each coding gives passes through it.

    Raises:
        CodingError: The data does not fit the codings, one is unknown, or they are more than `MOST_CODINGS`.
    """
    _check_count(codings)
    for name in reversed(codings):
        chunks = counted(_decode(chunks, name))
    return iter(chunks)


def encoded(body: bytes, codings: list[str], wanted_bytes: int) -> bytes:
    """`body` in `codings`, each at the level that comes closest to `wanted_bytes`.

    Raises:
        CodingError: A coding is unknown, or they are more than `MOST_CODINGS`.
    """
    _check_count(codings)
    for name in codings:
        body = _encode(body, name, wanted_bytes)
    return body


def _check_count(codings: list[str]) -> None:
    if len(codings) > MOST_CODINGS:
        raise CodingError(f"{len(codings)} nested codings")


def _encode(body: bytes, coding: str, wanted_bytes: int) -> bytes:
    if coding not in _ENCODERS:
        raise CodingError(f"unknown coding '{coding[:20]}'")
    encode, levels = _ENCODERS[coding]
    best = encode(body, levels[0])
    for level in levels[1:] if len(body) <= _MOST_TRIED else ():
        if abs(len(best) - wanted_bytes) <= wanted_bytes / 100:
            break
        best = min(best, encode(body, level), key=lambda data: abs(len(data) - wanted_bytes))
    return best


def _decode(chunks: Iterable[bytes], name: str) -> Iterator[bytes]:
    source = (piece[at : at + _PIECE] for piece in chunks for at in range(0, len(piece), _PIECE))
    first = next(source, b"")
    if not first:
        return
    if name not in ("gzip", "deflate", "br", "zstd"):
        raise CodingError(f"unknown coding '{name[:20]}'")
    try:
        yield from _DECODERS[name](chain([first], source), first)
    except (zlib.error, brotli.error, zstandard.ZstdError) as error:
        raise CodingError(f"not {name}: {error}") from None


def _inflated(chunks: Iterable[bytes], window: int) -> Iterator[bytes]:
    decoder = zlib.decompressobj(window)
    for chunk in chunks:
        data = chunk
        while data and not decoder.eof:
            yield decoder.decompress(data, _PIECE)
            data = decoder.unconsumed_tail
        if decoder.eof:
            return  # what follows the end, browsers pass over
    yield decoder.flush()
    if not decoder.eof:
        raise CodingError("its end is missing")


def _gzip(chunks: Iterable[bytes], first: bytes) -> Iterator[bytes]:
    return _inflated(chunks, 16 + zlib.MAX_WBITS)


def _deflate(chunks: Iterable[bytes], first: bytes) -> Iterator[bytes]:
    """RFC 9110 asks for the zlib format; some servers send the bare stream, and browsers take both."""
    is_zlib = first[0] & 0x0F == 8 and (len(first) < 2 or int.from_bytes(first[:2], "big") % 31 == 0)
    return _inflated(chunks, zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS)


def _brotli(chunks: Iterable[bytes], first: bytes) -> Iterator[bytes]:
    decoder = brotli.Decompressor()
    for chunk in chunks:
        data: bytes = decoder.process(chunk, output_buffer_limit=_PIECE)
        while data or not decoder.can_accept_more_data():
            yield data
            data = decoder.process(b"", output_buffer_limit=_PIECE)
        if decoder.is_finished():
            return
    raise CodingError("its end is missing")


def _zstd(chunks: Iterable[bytes], first: bytes) -> Iterator[bytes]:
    # RFC 9659: a window of at most 8 MB
    reader = zstandard.ZstdDecompressor(max_window_size=1 << 23).stream_reader(
        cast("IO[bytes]", _Source(chunks))
    )
    while data := reader.read(_PIECE):
        yield data


class _Source:
    """Chunks as a file to read from."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)

    def read(self, size: int = -1) -> bytes:
        return next(self._chunks, b"")


def _to_gzip(body: bytes, level: int) -> bytes:
    encoder = zlib.compressobj(level, wbits=16 + zlib.MAX_WBITS)
    return encoder.compress(body) + encoder.flush()


def _to_brotli(body: bytes, level: int) -> bytes:
    return bytes(brotli.compress(body, quality=level))


def _to_zstd(body: bytes, level: int) -> bytes:
    return zstandard.ZstdCompressor(level=level).compress(body)


_DECODERS: dict[str, Callable[[Iterable[bytes], bytes], Iterator[bytes]]] = {
    "gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
_ENCODERS: dict[str, tuple[Callable[[bytes, int], bytes], tuple[int, ...]]] = {
    "gzip": (_to_gzip, (6, 9, 5, 1)),
    "deflate": (zlib.compress, (6, 9, 5, 1)),
    "br": (_to_brotli, (5, 9, 4, 1)),
    "zstd": (_to_zstd, (3, 12, 1)),
}

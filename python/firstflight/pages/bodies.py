"""The bodies of archives: which are served, which are scanned, and where they are stored.

Bodies are files in the user's cache, named by their content: `$XDG_CACHE_HOME/firstflight/bodies/ab/abcd...`
(`~/.cache` if that is not set). A body is written to a temporary file, synced to disk and then moved into
place. Its size is checked when it is used again. So a file there is always complete, and two runs that open
one archive share it. Nothing is left elsewhere, however the process ends. The folder may be removed when no
experiment is running. Files that were not used for `KEPT_DAYS` are removed when the next archive is opened.

A small archive can contain more than a machine can unpack in a day: `Budget` limits the cost of opening one.

Content codings of HTTP (RFC 9110 section 8.4.1): gzip, deflate, br and zstd, in bounded memory.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, cast

import brotli  # type: ignore[import-untyped]

from firstflight.errors import PageInputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MOST_TEXT_BYTES = 1 << 25
"""Larger texts are served but not searched: the scanners read a whole text into memory."""
MOST_BODY_BYTES = 1 << 29
MOST_ARCHIVE_BYTES = 1 << 31
"""Limit for all bodies of an archive, as served."""
MOST_UNPACKED_BYTES = 1 << 32
"""Limit for what is read and decompressed, including what is left out in the end."""
MOST_MEMBERS = 400_000
"""Limit for files in an archive and records in its files; a WARC is read twice and counts twice."""
KEPT_DAYS = 14

_PIECE = 1 << 16
"""Bytes that are read, and that a decoder returns, at a time."""
_MOST_CHUNK_LINE = 1_000
_LEAST_CHUNK = 256
"""The least that a piece counts in the budget: a small piece costs more time than its bytes."""
_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Body:
    """A body on disk.

    Attributes:
        file: As served.
        text: Decoded, if it can refer to other resources; `None` if it cannot, or cannot be decoded.
        coded: Whether `file` is in the content codings of its header.
    """

    file: Path
    text: Path | None
    coded: bool


def keep(
    store: BodyStore, chunks: Iterable[bytes], entry: str, *, chunked: bool, encoding: str, scan: bool
) -> Body:
    """Stores a body as it was on the wire.

    Args:
        store: Where it is stored.
        chunks: The body as recorded.
        entry: The exchange, named in errors.
        chunked: Whether its header has `Transfer-Encoding: chunked`. A recorder may have removed the chunks.
        encoding: Its `Content-Encoding`. A recorder may have decoded it too.
        scan: Whether the decoded text is needed.
    """
    file = store.add(chunks, entry)
    if chunked and _is_chunked(file, store.budget.counted):
        file = store.add(_dechunked(file), entry)
    codings = codings_of(encoding)
    plain = file if scan and file.stat().st_size <= MOST_TEXT_BYTES else None
    if not codings:
        return Body(file, plain, True)
    if not _starts(file, codings, store.budget.counted):
        return Body(file, plain, False)
    return Body(file, _text(store, file, codings, entry) if scan else None, True)


def scannable(path: Path) -> bytes:
    """The content of a text; empty if it is longer than `MOST_TEXT_BYTES`."""
    return path.read_bytes() if path.stat().st_size <= MOST_TEXT_BYTES else b""


def _is_chunked(path: Path, counted: Callable[[Iterable[bytes]], Iterator[bytes]] = iter) -> bool:
    """Whether a file is a complete sequence of chunks (RFC 9112 section 7.1), including the last one."""
    try:
        for _ in counted(_dechunked(path)):
            pass
    except ValueError:
        return False
    return True


def _dechunked(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while True:
            line = file.readline(_MOST_CHUNK_LINE)
            size = int(line.partition(b";")[0].strip() or b"none", 16)
            if size == 0:
                return
            if size < 0 or not line.endswith(b"\n"):
                raise ValueError("no chunk")
            while size and (data := file.read(min(size, 1 << 16))):
                size -= len(data)
                yield data
            if size or file.read(2) != b"\r\n":
                raise ValueError("the chunk's end is missing")


def _starts(path: Path, codings: list[str], counted: Callable[[Iterable[bytes]], Iterator[bytes]]) -> bool:
    """Whether the beginning of the body is in `codings`."""
    try:
        next(decoded(pieces(path), codings, counted), b"")
    except CodingError:
        return False
    return True


def _text(store: BodyStore, file: Path, codings: list[str], entry: str) -> Path | None:
    """The decoded body. If it is damaged further on, what could be read, as a browser shows it."""
    text = bytearray()
    try:
        for piece in decoded(pieces(file), codings, store.budget.counted):
            text += piece
            if len(text) > MOST_TEXT_BYTES:
                return None
    except CodingError:
        pass
    return store.add([bytes(text)], entry)


class BodyStore:
    """Stores the bodies of one archive.

    Args:
        place: The archive, named in errors.

    Attributes:
        budget: Limits the cost of reading the archive.

    Raises:
        PageInputError: The cache cannot be written.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self.budget = Budget(place)
        self._folder = cache_folder() / "bodies"
        self._spent = 0
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            _prune(self._folder)
        except OSError as error:
            raise self._unwritable(error) from None

    def add(self, chunks: Iterable[bytes], entry: str) -> Path:
        """Writes one body, piece by piece, and returns its file.

        Args:
            chunks: The body.
            entry: The exchange, named in errors.

        Raises:
            PageInputError: It is larger than `MOST_BODY_BYTES`, all together are larger than
                `MOST_ARCHIVE_BYTES`, or the cache cannot be written.
        """
        digest = hashlib.sha256()
        try:
            with NamedTemporaryFile(dir=self._folder, prefix=".part-", delete=False) as file:
                part = Path(file.name)
                try:
                    for chunk in self._counted(chunks, entry):
                        digest.update(chunk)
                        file.write(chunk)
                    file.flush()
                    os.fsync(file.fileno())
                except BaseException:
                    part.unlink(missing_ok=True)
                    raise
            return self._settle(part, digest.hexdigest())
        except OSError as error:
            raise self._unwritable(error) from None

    def _counted(self, chunks: Iterable[bytes], entry: str) -> Iterator[bytes]:
        size = 0
        for chunk in chunks:
            size += len(chunk)
            self._spent += len(chunk)
            if size > MOST_BODY_BYTES:
                problem = f"{self._place}: {entry}: the body has more than {MOST_BODY_BYTES >> 20} MiB"
                raise PageInputError(problem, "remove this entry from the archive: no page needs it to load")
            if self._spent > MOST_ARCHIVE_BYTES:
                problem = (
                    f"{self._place}: {entry}: the bodies together have more than "
                    f"{MOST_ARCHIVE_BYTES >> 30} GiB"
                )
                raise PageInputError(problem, "split the archive: one page each")
            yield chunk

    def _settle(self, part: Path, name: str) -> Path:
        path = self._folder / name[:2] / name
        path.parent.mkdir(exist_ok=True)
        if path.exists() and path.stat().st_size == part.stat().st_size:
            part.unlink()
            os.utime(path)
        else:
            # It was not there, or a crash of the system had truncated it.
            part.replace(path)
        return path

    def _unwritable(self, error: OSError) -> PageInputError:
        problem = f"{self._place}: cannot keep its bodies in {self._folder}: {error.strerror or error}"
        return PageInputError(problem, "set XDG_CACHE_HOME to a folder you can write, with room for them")


def cache_folder() -> Path:
    """Firstflight's folder in the user's cache (XDG Base Directory Specification)."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "firstflight"


def pieces(path: Path) -> Iterator[bytes]:
    """The content of a file, piece by piece."""
    with path.open("rb") as file:
        while data := file.read(_PIECE):
            yield data


def _prune(folder: Path) -> None:
    """Removes files that were not used for `KEPT_DAYS`, once a day. Opening an archive uses its bodies."""
    mark, now = folder / ".pruned", time.time()
    if mark.exists() and now - mark.stat().st_mtime < _DAY_S:
        return
    mark.touch()
    oldest = now - KEPT_DAYS * _DAY_S
    files = (Path(root, name) for root, _, names in os.walk(folder) for name in names)
    for path in islice(files, 100_000):
        try:
            if path.stat().st_mtime < oldest:
                path.unlink()
        except OSError:
            continue  # another process was quicker


class Budget:
    """Counts the bytes that are unpacked from one archive, and its members.

    Args:
        place: The archive, named in errors.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self._bytes = 0
        self._members = 0

    def spend(self, size: int) -> None:
        """Counts bytes, at each layer of compression.

        Raises:
            PageInputError: The sum is now above `MOST_UNPACKED_BYTES`.
        """
        self._bytes += size
        if self._bytes > MOST_UNPACKED_BYTES:
            problem = f"{self.place}: more than {MOST_UNPACKED_BYTES >> 30} GiB were unpacked and no end"
            raise PageInputError(problem, "split the archive: one page each")

    def member(self) -> None:
        """Counts a file or record.

        Raises:
            PageInputError: The sum is now above `MOST_MEMBERS`.
        """
        self._members += 1
        if self._members > MOST_MEMBERS:
            problem = f"{self.place}: more than {MOST_MEMBERS} files and records in it"
            raise PageInputError(problem, "split the archive: one page each")

    def counted(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """`chunks`; each is counted when it is read, as at least `_LEAST_CHUNK` bytes."""
        for chunk in chunks:
            self.spend(max(len(chunk), _LEAST_CHUNK))
            yield chunk

    def reader(self, file: IO[bytes]) -> io.BufferedReader:
        """`file`, whose bytes are counted when they are read."""
        return io.BufferedReader(cast("io.RawIOBase", _Counted(file, self)))


class _Counted(io.RawIOBase):
    def __init__(self, file: IO[bytes], budget: Budget) -> None:
        self._file, self._budget = file, budget

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        data = self._file.read(len(buffer))
        self._budget.spend(len(data))
        buffer[: len(data)] = data
        return len(data)


MOST_CODINGS = 5
"""Limit for one body, as in curl (`MAX_ENCODE_STACK`). Each coding costs memory and time."""
_MOST_TRIED = 1 << 23
"""Larger bodies are encoded once: trying several levels would take too long."""
_Through = Callable[[Iterable[bytes]], Iterator[bytes]]


class CodingError(ValueError):
    """The data is not in the coding that it should be in, or is incomplete."""


def codings_of(content_encoding: str) -> list[str]:
    """The codings in a `Content-Encoding`, in the order in which they were applied, without identity."""
    names = (name.strip().lower().removeprefix("x-") for name in content_encoding.split(","))
    return [name for name in names if name not in ("", "identity", "utf-8", "none")]


def decoded(chunks: Iterable[bytes], codings: list[str], counted: _Through = iter) -> Iterator[bytes]:
    """Removes `codings`, the last one first, piece by piece.

    Args:
        chunks: The data.
        codings: In the order applied.
        counted: The output of each coding passes through this function.

    Raises:
        CodingError: The data does not fit the codings, one is unknown, or they are more than `MOST_CODINGS`.
    """
    _check_count(codings)
    for name in reversed(codings):
        chunks = counted(_decode(chunks, name))
    return iter(chunks)


def encoded(body: bytes, codings: list[str], wanted_bytes: int) -> bytes:
    """`body` in `codings`, each at the level whose result is nearest to `wanted_bytes`.

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
    if name not in _DECODERS:
        raise CodingError(f"unknown coding '{name[:20]}'")
    try:
        yield from _DECODERS[name](chain([first], source))
    except (zlib.error, brotli.error, zstd.ZstdError) as error:
        raise CodingError(f"not {name}: {error}") from None


def _inflated(chunks: Iterable[bytes], window: int) -> Iterator[bytes]:
    decoder = zlib.decompressobj(window)
    for chunk in chunks:
        data = chunk
        while data and not decoder.eof:
            yield decoder.decompress(data, _PIECE)
            data = decoder.unconsumed_tail
        if decoder.eof:
            return  # browsers ignore what follows the end
    yield decoder.flush()
    if not decoder.eof:
        raise CodingError("its end is missing")


def _gzip(chunks: Iterable[bytes]) -> Iterator[bytes]:
    return _inflated(chunks, 16 + zlib.MAX_WBITS)


def _deflate(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """RFC 9110 requires the zlib format. Some servers send the bare stream; browsers accept both."""
    source = iter(chunks)
    first = next(source)
    is_zlib = first[0] & 0x0F == 8 and (len(first) < 2 or int.from_bytes(first[:2], "big") % 31 == 0)
    return _inflated(chain([first], source), zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS)


def _brotli(chunks: Iterable[bytes]) -> Iterator[bytes]:
    decoder = brotli.Decompressor()
    for chunk in chunks:
        data: bytes = decoder.process(chunk, output_buffer_limit=_PIECE)
        while data or not decoder.can_accept_more_data():
            yield data
            data = decoder.process(b"", output_buffer_limit=_PIECE)
        if decoder.is_finished():
            return
    raise CodingError("its end is missing")


def _zstd(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Frames one after another (RFC 8878 section 3); of an incomplete frame, what can be read."""
    decoder = _zstd_frame()
    for chunk in chunks:
        data = chunk
        while data or not (decoder.needs_input or decoder.eof):
            if decoder.eof:
                decoder = _zstd_frame()
            yield decoder.decompress(data, _PIECE)
            data = decoder.unused_data


def _zstd_frame() -> zstd.ZstdDecompressor:
    # RFC 9659: a window of at most 8 MB
    return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: 23})


def _to_gzip(body: bytes, level: int) -> bytes:
    encoder = zlib.compressobj(level, wbits=16 + zlib.MAX_WBITS)
    return encoder.compress(body) + encoder.flush()


def _to_brotli(body: bytes, level: int) -> bytes:
    return bytes(brotli.compress(body, quality=level))


def _to_zstd(body: bytes, level: int) -> bytes:
    return zstd.compress(body, level)


_DECODERS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
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

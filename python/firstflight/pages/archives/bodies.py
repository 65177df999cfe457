"""From what an archive holds of a body to what is served and what is scanned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from firstflight.pages.archives.coding import CodingError, codings_of, decoded
from firstflight.pages.archives.store import BodyStore, pieces

# Larger texts are served, not searched: the scanners take a page's text as a whole.
MOST_TEXT_BYTES = 1 << 25
_MOST_CHUNK_LINE = 1_000


@dataclass(frozen=True, slots=True)
class Body:
    """A body on disk.

    Attributes:
        file: As served.
        text: Decoded, where it can refer to other resources; None where it cannot, or cannot be decoded.
        coded: Whether `file` is in the codings that its header says.
    """

    file: Path
    text: Path | None
    coded: bool


def keep(
    store: BodyStore, chunks: Iterable[bytes], entry: str, *, chunked: bool, encoding: str, scan: bool
) -> Body:
    """Keeps a body as it came over the wire.

    Args:
        store: Where to.
        chunks: The body as recorded.
        entry: Whose body it is, named in errors.
        chunked: Whether its header says `Transfer-Encoding: chunked`. Recorders may have undone it, or not.
        encoding: Its `Content-Encoding`. Recorders may have undone that too.
        scan: Whether the decoded text is wanted.
    """
    file = store.add(chunks, entry)
    if chunked and is_chunked(file, store.budget.counted):
        file = store.add(_dechunked(file), entry)
    codings = codings_of(encoding)
    plain = file if scan and file.stat().st_size <= MOST_TEXT_BYTES else None
    if not codings:
        return Body(file, plain, True)
    if not _starts(file, codings, store.budget.counted):
        return Body(file, plain, False)
    return Body(file, _text(store, file, codings, entry) if scan else None, True)


def scannable(path: Path) -> bytes:
    """The content of a text, empty if it is longer than `MOST_TEXT_BYTES`."""
    return path.read_bytes() if path.stat().st_size <= MOST_TEXT_BYTES else b""


def is_chunked(path: Path, counted: Callable[[Iterable[bytes]], Iterator[bytes]] = iter) -> bool:
    """Whether a file is a whole sequence of chunks (RFC 9112 section 7.1), to its last one."""
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
    """The decoded body; of one that is damaged farther on, what could be read, as a browser shows it."""
    text = bytearray()
    try:
        for piece in decoded(pieces(file), codings, store.budget.counted):
            text += piece
            if len(text) > MOST_TEXT_BYTES:
                return None
    except CodingError:
        pass
    return store.add([bytes(text)], entry)

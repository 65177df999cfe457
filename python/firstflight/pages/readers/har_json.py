"""The JSON of a HAR, read in bounded memory and without trusting it.

What is not of the expected type counts as absent.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from firstflight.errors import PageInputError

Node: TypeAlias = dict[str, object]
_MOST = 1e15
# JSON is read as a whole, and takes several times its size in memory.
MOST_BYTES = 1 << 27


def read_har(path: Path) -> Node:
    """The `log` object of the HAR at `path`, with at least one entry.

    Raises:
        PageInputError: The file cannot be read, is too long, or is no HAR.
    """
    data = _read(path)
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        problem = f"{path}: byte {error.start} is not UTF-8"
        raise PageInputError(problem, "export the HAR again, or save it as UTF-8") from None
    except (ValueError, RecursionError) as error:
        problem = f"{path}: not JSON: {str(error)[:120] or 'empty'}"
        raise PageInputError(problem, "export the HAR again: it is damaged or its end is missing") from None
    log = node(document, "log") if isinstance(document, dict) else {}
    if not nodes(log, "entries"):
        problem = f"{path}: no HAR: there is no log.entries with a request in it"
        raise PageInputError(problem, "record the page again with the network panel open, and export it")
    return log


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if zipped else path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise PageInputError(f"{path}: not whole gzip: {error}", "copy or export the file again") from None
    except OSError as error:
        problem = f"{path}: {error.strerror or error}"
        raise PageInputError(problem, "check the path and its permissions") from None
    if len(data) > MOST_BYTES:
        problem = f"{path}: more than {MOST_BYTES >> 20} MiB"
        raise PageInputError(problem, "export it without bodies, or as WARC or WACZ")
    return data


def node(parent: Node, key: str) -> Node:
    """The object at `key`, empty if there is none."""
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def nodes(parent: Node, key: str) -> list[Node]:
    """The objects in the list at `key`."""
    value = parent.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(parent: Node, key: str) -> str:
    """The string at `key`, empty if there is none."""
    value = parent.get(key)
    return value if isinstance(value, str) else ""


def number(parent: Node, key: str) -> float | None:
    """The number at `key`, also where it is written as a string; None if there is none or it is absurd."""
    value = parent.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) and abs(found) < _MOST else None


def positive(parent: Node, key: str) -> float | None:
    """The number at `key` if it is above 0: HAR writes -1, and many tools 0, for 'not known'."""
    value = number(parent, key)
    return value if value is not None and value > 0 else None


def moment_ms(parent: Node, key: str) -> float | None:
    """The ISO 8601 time at `key` in ms since 1970; without a zone it counts as UTC."""
    try:
        moment = datetime.fromisoformat(text(parent, key).strip())
        zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return zoned.timestamp() * 1000
    except (ValueError, OverflowError):
        return None


def pairs(parent: Node, key: str) -> list[tuple[str, str]]:
    """The `name` and `value` of each object in the list at `key`."""
    return [(text(item, "name"), text(item, "value")) for item in nodes(parent, key)]

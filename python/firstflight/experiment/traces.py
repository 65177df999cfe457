"""Traces of links in Mahimahi's format: read from files, gzipped or not, and kept with the results.

A results folder holds those of its run in `traces/down/` and `traces/up/`, where its `plan.toml` finds them.
"""

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

from firstflight import _core
from firstflight.engines.task import Trace
from firstflight.experiment.units import BadValueError, quoted
from firstflight.results import write_whole

TRACES = "traces"
"""Name of the folder in a results folder."""

_MOST_BYTES = 100_000_000
_GZIP = b"\x1f\x8b"
_MOST_NAME = 200
_FORMAT = "a trace has a time in ms on each line, none before the one above; docs/path.md"


def parse_trace(value: object) -> Trace | None:
    """Reads the trace in a file; `None` is `off`."""
    if value in (None, "off"):
        return None
    if isinstance(value, Trace):
        return value
    if not isinstance(value, str) or not value:
        raise BadValueError(f"{quoted(value)} is not a file", "name a file in Mahimahi's format, or off")
    file = Path(value)
    text = _text(file)
    try:
        mean_bps, lasts_ms = _core.measure_trace(text)
    except ValueError as error:
        raise BadValueError(f"{file}: {error}", _FORMAT) from None
    return Trace(file.name.removesuffix(".gz")[:_MOST_NAME], text, mean_bps, lasts_ms)


def write_trace(way: str) -> Callable[[Trace | None], str]:
    """Where a results folder keeps the trace of that way, `down` or `up`, as its plan names it."""
    return lambda trace: f"{TRACES}/{way}/{trace.name}.gz" if trace else "off"


def keep_trace(folder: Path, way: str, trace: Trace | None) -> None:
    """Keeps a trace in a results folder, if there is one."""
    if trace:
        write_whole(folder / write_trace(way)(trace), gzip.compress(trace.text.encode(), mtime=0))


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            zipped = opened.read(len(_GZIP)) == _GZIP
        with gzip.open(file) if zipped else file.open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise BadValueError(f"{file}: is too long", f"a trace has at most {_MOST_BYTES} bytes")
        return data.decode()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadValueError(f"{file}: not whole gzip: {error}", "copy the file again") from None
    except UnicodeDecodeError as error:
        raise BadValueError(f"{file}: byte {error.start} is not text", _FORMAT) from None
    except OSError as error:
        raise BadValueError(f"{file}: {error.strerror or error}", "check the path of the trace") from None

"""How often a load is made: again when its relay was late or its client broke, the last attempt counts.

An instrument failure (the laboratory could not be built, or died) is no attempt and no result. The load is
made again at once; if that fails too it is left, for `--resume` to make.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import cast

from firstflight.engines.engine import Engine, Record, instrument_failure_of
from firstflight.errors import LabError
from firstflight.experiment.schedule import Block
from firstflight.model.load import PlannedLoad
from firstflight.pages import LoadedPage, UnderSchemes
from firstflight.results import LoadRecord
from firstflight.results.journal import is_instrument_failure

MAX_ATTEMPTS = 3
"""How often a load is made at most while its relay is late."""

MAX_FAILURES = 2
"""After so many instrument failures one after the other a load is left."""

_under = UnderSchemes()
"""Of a plan whose treatments differ in the scheme, pages are opened as recorded."""


def make_block(
    engine: Engine,
    page: LoadedPage,
    block: Block,
    attempts: Callable[[PlannedLoad], int],
    keep: Callable[[Record], None],
) -> None:
    """Makes the loads of a block, one after the other.

    Args:
        engine: Makes them.
        page: The block's page.
        block: What is planned.
        attempts: How often a load was made before.
        keep: Takes the record of each attempt, and of each instrument failure, as it ends.

    Raises:
        EngineStoppedError: The engine was told to stop.
    """
    for planned in block.loads:
        attempt, failures = attempts(planned) + 1, 0
        loaded = _under(planned.scheme, page) if "scheme" in planned.compared else page
        while failures < MAX_FAILURES:
            record: Record = {**_made(engine, planned, loaded), "attempt": attempt}
            keep(record)
            if is_settled(record):
                break
            if is_instrument_failure(record):
                failures += 1
            else:
                attempt, failures = attempt + 1, 0


def is_settled(record: LoadRecord) -> bool:
    """Whether the load is made no more: its relay was on time, or it had all its attempts."""
    if is_instrument_failure(record):
        return False
    if cast(Record, record).get("broken"):
        return attempt_of(record) > 1
    return not record["relay"].get("late") or attempt_of(record) >= MAX_ATTEMPTS


def attempt_of(record: LoadRecord) -> int:
    """Which attempt the record is of, from 1."""
    return int(cast(Record, record).get("attempt", 1))


def _made(engine: Engine, planned: PlannedLoad, page: LoadedPage) -> Record:
    started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    try:
        return engine.load(planned, page)
    except LabError as error:
        return instrument_failure_of(planned, started_at, error)

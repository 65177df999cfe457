"""How often a load is made: again when its relay was late or its client broke, the last attempt counts."""

from collections.abc import Callable
from typing import cast

from firstflight.engines.task import Engine, PlannedLoad, Record
from firstflight.experiment.schedule import Block
from firstflight.pages import LoadedPage
from firstflight.results import LoadRecord

MAX_ATTEMPTS = 3
"""How often a load is made at most while its relay is late."""


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
        keep: Takes the record of each attempt as it ends.

    Raises:
        EngineStoppedError: The engine was told to stop.
    """
    for planned in block.loads:
        for attempt in range(attempts(planned) + 1, MAX_ATTEMPTS + 1):
            record: Record = {**engine.load(planned, page), "attempt": attempt}
            keep(record)
            if is_settled(record):
                break


def is_settled(record: LoadRecord) -> bool:
    """Whether the load is made no more: its relay was on time, or it had all its attempts."""
    if cast(Record, record).get("broken"):
        return attempt_of(record) > 1
    return not record["relay"].get("late") or attempt_of(record) >= MAX_ATTEMPTS


def attempt_of(record: LoadRecord) -> int:
    """Which attempt the record is of, from 1."""
    return int(cast(Record, record).get("attempt", 1))

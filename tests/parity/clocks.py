"""The two clocks, asked in the same words."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from firstflight import _core
from firstflight.engines.lab import Lab

ATTEMPTS = 3
"""How often a load is made while its relay is late: as often as an experiment does."""
AT_A_TIME = 8
LIMIT_S = 120.0

Fields = dict[str, Any]


def simulate(page: Fields, job: Fields) -> Fields:
    """Loads a page on the virtual clock."""
    record: Fields = json.loads(_core.Simulator(json.dumps(page)).load(json.dumps(job)))
    return record


def emulate(lab: Lab, page: Fields, job: Fields) -> Fields:
    """Loads a page with the real kernel; again while the relay is late."""
    record: Fields = {}
    for _ in range(ATTEMPTS):
        record = lab.ask("load", {**job, "page": page}, timeout_s=LIMIT_S)
        if not record["relay"]["late"]:
            break
    return record


def emulate_all(lab: Lab, loads: Sequence[tuple[Fields, Fields]]) -> list[Fields]:
    """Loads pages side by side, each in a laboratory of its own: laboratories mostly wait."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return list(pool.map(lambda load: emulate(lab, *load), loads))

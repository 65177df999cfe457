"""Loads pages on both clocks: simulated on the virtual clock, and with the real kernel in the laboratory."""

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from typing import Any

from firstflight import _core
from firstflight.engines.lab import Lab

WAITS_S = 180.0
"""How long a load is repeated while its relay is late, s. A late relay measures the machine, not the path."""
PAUSE_S = 0.5
AT_A_TIME = 8
ALIKE = 0.01
"""Two loads of a page are alike if their times differ by at most this share of the shorter one."""
LIMIT_S = 120.0

Fields = dict[str, Any]


def simulate(page: Fields, job: Fields) -> Fields:
    """Loads a page on the virtual clock."""
    record: Fields = json.loads(_core.Simulator(json.dumps(page)).load(json.dumps(job)))
    return record


def emulate(lab: Lab, page: Fields, job: Fields) -> Fields:
    """Loads a page with the real kernel, again and again until the relay was in time.

    The host of a virtual machine may take its processors away for seconds; this waits until it gives them
    back.
    """
    end = time.monotonic() + WAITS_S
    while time.monotonic() < end:
        record = load(lab, page, job)
        if not record["relay"]["late"]:
            return record
        time.sleep(PAUSE_S)
    raise AssertionError(f"the relay was late in every load for {WAITS_S:g} s")


def emulate_all(lab: Lab, loads: Sequence[tuple[Fields, Fields]]) -> list[Fields]:
    """Loads pages in parallel, each in a laboratory of its own, since laboratories mostly wait.

    Loads whose relay was late are repeated one at a time.
    """
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        records = list(pool.map(lambda one: load(lab, *one), loads))
    return [
        emulate(lab, *one) if record["relay"]["late"] else record
        for one, record in zip(loads, records, strict=True)
    ]


def emulate_medians(lab: Lab, loads: Sequence[tuple[Fields, Fields]]) -> list[Fields]:
    """Loads each page two or three times with the real kernel; returns the records with the median load time.

    If a client or server waits for a processor, the load takes longer although the relay is in time. If two
    loads are alike, there is no third one, since the median would then be one of these two in any case.
    """
    rounds = list(zip(emulate_all(lab, loads), emulate_all(lab, loads), strict=True))
    differ = [index for index, records in enumerate(rounds) if not alike(*records)]
    third = dict(zip(differ, emulate_all(lab, [loads[index] for index in differ]), strict=True))
    return [
        sorted([*records, third.get(index, records[0])], key=itemgetter("plt_ms"))[1]
        for index, records in enumerate(rounds)
    ]


def alike(one: Fields, other: Fields) -> bool:
    """Whether two loads took about the same time (`ALIKE`)."""
    shorter, longer = sorted(record["plt_ms"] for record in (one, other))
    return bool(longer <= shorter * (1 + ALIKE))


def load(lab: Lab, page: Fields, job: Fields) -> Fields:
    """Loads a page once with the real kernel."""
    record: Fields = lab.ask("load", {**job, "page": page}, timeout_s=LIMIT_S)
    return record

"""Random scripts on this kernel and on the simulator's TCP, packet by packet: others every day.

The corpus (`crates/replay/corpus`) holds the model against kernels that were recorded; this holds it against
the one that runs. A script is what `firstflight-lab replay --draw SEED` draws.
"""

import os
import re
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from firstflight.engines.lab import Lab, lab_binary

pytestmark = pytest.mark.timing

SCRIPTS, LABORATORIES = 30, 6
DAY_S = 86_400
IN_TIME_MS = 0.2
"""A packet that is later moves acknowledgments from one tick of the kernel to the next."""
LIMIT_S = 600.0
VERDICT = re.compile(r"seed-(\d+): (.*) \(\d+ packets, at most ([\d.]+) ms late\)")


class Replayed(NamedTuple):
    """A script on both: what fed with the kernel's packets the model sent, and how late a packet was."""

    seed: int
    verdict: str
    late_ms: float

    @property
    def is_identical(self) -> bool:
        return self.verdict.startswith("identical when fed") or self.verdict == "identical"


def replay(first: int, count: int) -> list[Replayed]:
    """Draws and replays scripts in a laboratory of their own."""
    command = [str(lab_binary()), "replay", "--draw", str(first), "--count", str(count)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert ended.returncode == 0, ended.stderr
    found = VERDICT.findall(ended.stderr)
    return [Replayed(int(seed), verdict, float(late)) for seed, verdict, late in found]


@pytest.fixture(scope="module")
def replayed(lab: Lab) -> Sequence[Replayed]:
    today = int(time.time() // DAY_S) * SCRIPTS
    each = SCRIPTS // LABORATORIES
    with ThreadPoolExecutor(LABORATORIES) as pool:
        parts = pool.map(lambda part: replay(today + part * each, each), range(LABORATORIES))
        return [one for part in parts for one in part]


def test_the_model_sends_what_this_kernel_sends(replayed: Sequence[Replayed]) -> None:
    """Nine of ten are identical if packets are in time; before replays corrected the model, one of ten."""
    assert len(replayed) == SCRIPTS
    in_time = [one for one in replayed if one.late_ms <= IN_TIME_MS]
    assert len(in_time) >= SCRIPTS // 3, "packets were late: measure again on a quieter machine"
    other = [f"seed {one.seed}: {one.verdict}" for one in in_time if not one.is_identical]
    kernel = f"Linux {os.uname().release} differs from the model in {len(other)} of {len(in_time)} scripts"
    assert len(other) <= len(in_time) / 4, "\n".join([kernel, *other])

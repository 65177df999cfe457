"""Random scripts on this kernel and the simulator's TCP, compared packet by packet. Each day has new scripts.

`crates/replay/corpus` compares the model with recordings of other kernels. This test compares it with the
kernel that runs. `firstflight-lab replay --draw SEED` generates the scripts.
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
"""A packet is in time if it is at most this late, ms.

A later one moves acknowledgments to another kernel tick.
"""
LIMIT_S = 600.0
VERDICT = re.compile(r"seed-(\d+): (.*) \(\d+ packets, at most ([\d.]+) ms late\)")


class Replayed(NamedTuple):
    """The result of one script: how the model's packets compare, and the largest delay of a packet, ms.

    The model receives the kernel's packets as input.
    """

    seed: int
    verdict: str
    late_ms: float

    @property
    def is_identical(self) -> bool:
        return self.verdict.startswith("identical when fed") or self.verdict == "identical"


def replay(first: int, count: int) -> list[Replayed]:
    """Generates and replays `count` scripts in a laboratory of their own, from the seed `first` on."""
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
    """About nine of ten scripts are identical if packets are in time.

    Before the model was corrected with such replays, it was one of ten.
    """
    assert len(replayed) == SCRIPTS
    in_time = [one for one in replayed if one.late_ms <= IN_TIME_MS]
    assert len(in_time) >= SCRIPTS // 3, "packets were late: measure again on a quieter machine"
    other = [f"seed {one.seed}: {one.verdict}" for one in in_time if not one.is_identical]
    kernel = f"Linux {os.uname().release} differs from the model in {len(other)} of {len(in_time)} scripts"
    assert len(other) <= len(in_time) / 4, "\n".join([kernel, *other])

"""What is said of simulated numbers wherever they are shown: that they are, and how far off those were."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

BASELINE = "simulated_error.json"
"""Beside this module; made from the accuracy baseline with docs/accuracy.md."""

ADVICE = "docs/accuracy.md says where it is off by more; make some of these loads with --engine emulate too"


def caution() -> str:
    """One sentence with the simulator's error against the real kernel, over the baseline's conditions."""
    error = _error()
    plt, tail = error["plt_error_median"], error["plt_error_p95"]
    return (
        "these numbers are simulated, not measured: TCP on a virtual clock. "
        f"On {error['conditions']} conditions that the real kernel was measured on, its PLT was off by "
        f"{100 * plt:.1f} % at the median and {100 * tail:.1f} % at the 95th percentile, "
        f"the improvement by {error['improvement_error_pp']:.1f} points at the median"
    )


@cache
def _error() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((files(__package__) / BASELINE).read_text(encoding="utf-8"))
    return found

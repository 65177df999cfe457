"""What makes a table doubtful as a whole: warnings that need the summary's cells, not their loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from firstflight.analysis.statistics import FALSE_DISCOVERIES, NO_DIFFERENCE, chance_of_sign
from firstflight.analysis.warnings import Warning
from firstflight.analysis.words import some


def doubt_of_many(cells: Sequence[Mapping[str, Any]]) -> list[Warning]:
    """The cells whose verdict does not hold once their number is counted in; asked where blocks can tell.

    Args:
        cells: Of the summary.
    """
    compared = [cell for cell in cells if cell["n"]]
    blocks = min((cell["n"] for cell in compared), default=0)
    if len(compared) < 2 or chance_of_sign(blocks) > FALSE_DISCOVERIES:
        return []
    shown = [cell for cell in compared if cell["verdict"] != NO_DIFFERENCE]
    weak = [f"{c['page']} {c['rtt_ms']:g} ms" for c in shown if c["p_adjusted"] > FALSE_DISCOVERIES]
    if not weak:
        return []
    return [
        {
            "kind": "many cells",
            "message": f"among {len(compared)} cells so small a difference may be chance: {some(weak)}",
            "advice": "do not pick these out of the table; more repeats would tell (see p_adjusted)",
        }
    ]


def doubt_of_width(cells: Sequence[Mapping[str, Any]], until: float | None) -> list[Warning]:
    """The cells whose interval stayed wider than the plan asks for.

    Args:
        cells: Of the summary.
        until: The width, a fraction; None where the plan asks for none.
    """
    wide = [f"{cell['page']} {cell['rtt_ms']:g} ms" for cell in cells if _is_wider(cell, until)]
    if until is None or not wide:
        return []
    return [
        {
            "kind": "wide intervals",
            "message": f"the interval is wider than the {100 * until:g} % asked for: {some(wide)}",
            "advice": "go on with `--resume` and a larger `--most-repeats`, on a quieter machine",
        }
    ]


def doubt_of_what_if(plan: Mapping[str, Any]) -> list[Warning]:
    """That the loads are of a world that is not there.

    Args:
        plan: Its keys, as the results folder has them.
    """
    what_if = plan.get("what_if", "off")
    if what_if == "off":
        return []
    return [
        {
            "kind": "what if",
            "message": f"these loads are of a TCP that no kernel has: {what_if}",
            "advice": "docs/what-if.md says what that means; `firstflight compare` with a run without it",
        }
    ]


def _is_wider(cell: Mapping[str, Any], until: float | None) -> bool:
    found = cell["improvement"]
    return until is not None and (found["low"] is None or found["high"] - found["low"] > until)

"""What makes a table doubtful as a whole: warnings that need the summary's cells, not their loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from firstflight.analysis.cells import cell_name
from firstflight.analysis.statistics import NO_DIFFERENCE, TOO_FEW_REPEATS
from firstflight.analysis.warnings import Warning
from firstflight.analysis.words import some
from firstflight.plural import plural


def warn_of_too_few_repeats(cells: Sequence[Mapping[str, Any]]) -> list[Warning]:
    """The cells whose blocks cannot show any difference in a table of this size.

    Args:
        cells: Of the summary.
    """
    few = [cell for cell in cells if cell["verdict"] == TOO_FEW_REPEATS]
    if not few:
        return []
    needed = max(cell["blocks_needed"] for cell in few)
    blocks = plural(min(cell["n"] for cell in few), "paired block")
    family = plural(sum(cell["p_value"] is not None for cell in cells), "cell")
    return [
        {
            "kind": "too few repeats",
            "message": f"{blocks} in a table of {family}: a verdict takes {needed}: {_where(few)}",
            "advice": f"`--repeats {needed}` or more, or fewer cells",
        }
    ]


def warn_of_many_cells(cells: Sequence[Mapping[str, Any]]) -> list[Warning]:
    """The cells whose own interval excludes 0, but whose difference may be chance in a table of this size.

    Args:
        cells: Of the summary.
    """
    weak = [
        cell for cell in cells if cell["verdict"] == NO_DIFFERENCE and _excludes_zero(cell["improvement"])
    ]
    if not weak:
        return []
    family = sum(cell["p_value"] is not None for cell in cells)
    return [
        {
            "kind": "many cells",
            "message": f"among {plural(family, 'cell')} such a difference may be random: {_where(weak)}",
            "advice": "no verdict, though the interval excludes 0; more repeats would tell (see p_adjusted)",
        }
    ]


def warn_of_width(cells: Sequence[Mapping[str, Any]], until: float | None) -> list[Warning]:
    """The cells whose interval stayed wider than the plan asks for.

    Args:
        cells: Of the summary.
        until: The width, a fraction; None where the plan asks for none.
    """
    wide = [cell for cell in cells if not cell["exact"] and _is_wider(cell["improvement"], until)]
    if until is None or not wide:
        return []
    return [
        {
            "kind": "wide intervals",
            "message": f"the interval is wider than the {100 * until:g} % asked for: {_where(wide)}",
            "advice": "go on with `--resume` and a larger `--most-repeats`, on a quieter machine",
        }
    ]


def warn_of_what_if(plan: Mapping[str, Any]) -> list[Warning]:
    """That the loads are of a TCP that does not exist.

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


def _excludes_zero(found: Mapping[str, float | None]) -> bool:
    low, high = found["low"], found["high"]
    return low is not None and high is not None and (low > 0 or high < 0)


def _is_wider(found: Mapping[str, Any], until: float | None) -> bool:
    return until is not None and (found["low"] is None or found["high"] - found["low"] > until)


def _where(cells: Sequence[Mapping[str, Any]]) -> str:
    return some([cell_name(cell) for cell in cells])

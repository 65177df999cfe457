"""Prints, as Markdown, what a browser requested and received in an experiment: a row per page.

    python tests/validation/served_table.py RESULTS

RESULTS is a results folder. Columns:

- the requests in the recording of the page, and those that the browser made;
- how many of these were served, how many were not in the recording, and how many failed in other ways;
- the share served of the requests that are in the recording, and of all requests;
- the PLTs with TCP and with TFO.

If there are several repeats, the requests are those of the first, and the PLTs are medians.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from firstflight.results import Journal
from firstflight.results.files import JOURNAL, read_profile

_COLUMNS = (
    *("page", "recorded", "asked", "served", "not recorded", "failed", "served of recorded", "served of all"),
    *("PLT tcp, ms", "PLT tfo, ms"),
)


def main() -> int:
    """Prints the table."""
    folder = Path(sys.argv[1])
    last: dict[str, dict[str, Any]] = {
        r["load"]["load_id"]: {**r} for r in Journal(folder / JOURNAL).records()
    }
    loads = [record["load"] for record in last.values()]
    rows = [line(_COLUMNS), line(["---"] * len(_COLUMNS))]
    for page in sorted({load["page"] for load in loads}):
        profile = read_profile(folder, page)
        recorded = len(profile.resources) if profile else None
        rows.append(row(page, recorded, [load for load in loads if load["page"] == page]))
    sys.stdout.write("".join(rows))
    return 0


def row(page: str, recorded: int | None, loads: list[dict[str, Any]]) -> str:
    """The row of one page."""
    good = [load for load in loads if load["status"] == "ok"]
    if not good:
        return line([page, recorded, f"failed: {loads[0]['error']}"])
    first = good[0]
    failed, strange = first["failed_requests"], first["unmatched_requests"]
    served = first["requests"] - failed
    plts = [median_ms(good, mode) for mode in ("tcp", "tfo")]
    asked = first["requests"]
    shares = [f"{share:.1%}" for share in (served / (asked - strange or 1), served / (asked or 1))]
    return line([page, recorded, asked, served, strange, failed - strange, *shares, *plts])


def line(cells: Iterable[object]) -> str:
    """Formats a row of a table."""
    return f"| {' | '.join(map(str, cells))} |\n"


def median_ms(loads: list[dict[str, Any]], mode: str) -> str:
    """The median PLT in a mode, ms; a dash if no load succeeded."""
    plts = [load["plt_ms"] for load in loads if load["mode"] == mode and load["plt_ms"]]
    return f"{median(plts):,.0f}" if plts else "-"


if __name__ == "__main__":
    sys.exit(main())

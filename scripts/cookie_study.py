"""Cookie states and middleboxes, by the loader, by Chromium and simulated, as a Markdown table.

    python scripts/cookie_study.py studies/cookies/plan.toml DIR

Runs of `DIR` that are complete are not made again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from firstflight.analysis import words
from firstflight.api import run
from firstflight.experiment.plan_file import read_plan_file, resolve
from firstflight.model.path import MIDDLEBOXES

CLIENTS: Mapping[str, Mapping[str, str]] = {
    "loader": {"client": "loader"},
    "Chromium": {"client": "chromium"},
    "simulator": {"engine": "simulate"},
}
BOXES = tuple(kind for kind in MIDDLEBOXES if kind != "black-hole")
SLOW = "black-hole"
"""A load behind it lasts until it is given up, a browser's two minutes: once, and not with a browser."""

PLT_GATE = 0.03
GAIN_GATE = 0.02
"""What docs/accuracy.md aims at: error of a PLT, and of an improvement in points."""

Cell = Any
Cells = dict[str, dict[str, Cell]]
"""By client, then by state or kind."""


def main() -> int:
    """Makes the runs that are missing, and prints the table."""
    plan, folder = Path(sys.argv[1]), Path(sys.argv[2])
    cells = {client: dict(measured(plan, folder / client.lower(), keys)) for client, keys in CLIENTS.items()}
    sys.stdout.writelines(table(cells))
    return 0


def measured(plan: Path, folder: Path, client: Mapping[str, str]) -> Iterator[tuple[str, Cell]]:
    """A cell per state and per kind."""
    for cell in _cells(plan, folder / "states", client):
        yield cell["cookies"], cell
    for kind in BOXES if client.get("client") == "chromium" else (*BOXES, SLOW):
        boxed = {**client, "cookies": "warm", "middlebox": kind, "repeats": "1" if kind == SLOW else "3"}
        [cell] = _cells(plan, folder / kind, boxed)
        yield kind, cell


def _cells(plan: Path, folder: Path, keys: Mapping[str, str]) -> list[Cell]:
    wanted = resolve(keys, read_plan_file(plan))
    results = run(wanted, out=folder, resume=(folder / "plan.toml").exists(), say=_say)
    cells: list[Cell] = results.summary["cells"]
    return cells


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def table(cells: Cells) -> Iterator[str]:
    """One row per state and kind."""
    yield "| cookies, or box | loader: TCP, gain | SYN data taken | Chromium: TCP, gain | SYN data taken "
    yield "| simulator: gain | agrees |\n|---|---:|---:|---:|---:|---:|---|\n"
    for name, loader in cells["loader"].items():
        chromium, simulated = cells["Chromium"].get(name), cells["simulator"][name]
        real = (text for cell in (loader, chromium) for text in _seen(cell))
        yield f"| `{name}` | {' | '.join(real)} | {_gain(simulated)} | {_agrees(loader, simulated)} |\n"


def _seen(cell: Cell | None) -> tuple[str, str]:
    if cell is None:
        return words.DASH, words.DASH
    return f"{words.seconds(cell['baseline_ms']['median'])}, {_gain(cell)}", _taken(cell)


def _gain(cell: Cell) -> str:
    return words.percent(cell["improvement"]["point"]) if cell["n"] else "fails"


def _taken(cell: Cell) -> str:
    proof, seen = cell["proof"], cell["proof"]["treatment"]
    if not cell["n"]:
        return words.DASH
    text = f"{seen['accepted']} of {seen['connections']}"
    return text if proof["ok"] else f"{text}, not proved"


def _agrees(loader: Cell, simulated: Cell) -> str:
    """Whether the simulator is as near to the loader as docs/accuracy.md asks it to be."""
    if not (loader["n"] and simulated["n"]):
        return "yes" if loader["n"] == simulated["n"] else "no"
    sides = ("baseline_ms", "treatment_ms")
    errors = [abs(simulated[name]["median"] / loader[name]["median"] - 1) for name in sides]
    points = abs(simulated["improvement"]["point"] - loader["improvement"]["point"])
    if max(errors) <= PLT_GATE and points <= GAIN_GATE:
        return "yes"
    return f"no: PLT {words.percent(max(errors))}, {100 * points:.1f} points"


if __name__ == "__main__":
    raise SystemExit(main())

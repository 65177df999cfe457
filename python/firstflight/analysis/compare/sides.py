"""What is compared: a results folder of ours, or a published table."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from firstflight.analysis import words
from firstflight.analysis.summary import summarize
from firstflight.errors import UsageError
from firstflight.model.treatment import FAST_OPEN, MODES, PLAIN
from firstflight.published import PublishedTable, published_names, published_table
from firstflight.results.files import PLAN

DIMENSIONS = ("page", "rtt_ms", "down_mbps", "up_mbps", "topology", "loss", "client", "engine", "treatment")
"""What may tell the cells of a side apart; None where the side does not say."""


@dataclass(frozen=True)
class SideCell:
    """One cell pair of a side.

    Attributes:
        key: By `DIMENSIONS`.
        baseline_ms: Median PLT of the baseline.
        treatment_ms: Of the treatment.
        improvement: (PLT_baseline - PLT_treatment) / PLT_baseline, signed.
        low: Lower end of its interval; None: nobody knows.
        high: Upper end.
        note: What is known to be wrong with it.
        blocks: Its paired blocks; None: the number is exact, or nothing is known of its spread.
        is_proved: Whether its proof holds.
    """

    key: Mapping[str, Any]
    baseline_ms: float
    treatment_ms: float
    improvement: float
    low: float | None = None
    high: float | None = None
    note: str = ""
    blocks: int | None = None
    is_proved: bool = True


@dataclass(frozen=True)
class Side:
    """One of the two.

    Attributes:
        name: As it was asked for.
        setup: How its loads were made, in words.
        cells: What came of it.
        caption: All that decides its numbers, as its own tables say it; of a published table, what is known.
    """

    name: str
    setup: Mapping[str, str]
    cells: tuple[SideCell, ...]
    caption: str = ""

    def varies(self, dimension: str) -> bool:
        """Whether a dimension has several values on this side."""
        return len({cell.key.get(dimension) for cell in self.cells}) > 1


def open_side(name: str) -> Side:
    """Opens a results folder, or a published table by its name; nothing is written.

    Raises:
        UsageError: There is neither.
    """
    if name in published_names():
        return _published(published_table(name))
    folder = Path(name)
    if not folder.exists():
        tables = ", ".join(published_names())
        raise UsageError(f"{name}: no such results folder or table", f"published tables are {tables}")
    cells = [cell for cell in summarize(folder)["cells"] if cell["improvement"]["point"] is not None]
    if not cells:
        raise UsageError(
            f"{name}: no cell has a baseline and a treatment", f"run it with --mode {','.join(MODES)}"
        )
    return Side(name, _setup(folder, cells), tuple(map(_cell, cells)), words.caption(*cells))


def _published(table: PublishedTable) -> Side:
    cells = tuple(
        SideCell(
            {name: getattr(cell, name, None) for name in DIMENSIONS},
            cell.tcp_ms,
            cell.tfo_ms,
            cell.improvement,
            note=cell.note,
        )
        for cell in table.cells
    )
    setup = {**table.facts, "compared": f"{FAST_OPEN} against {PLAIN}"}
    return Side(table.name, setup, cells, ", ".join(table.facts.values()))


def _cell(cell: Mapping[str, Any]) -> SideCell:
    found = cell["improvement"]
    return SideCell(
        {name: cell[name] for name in DIMENSIONS},
        cell["baseline_ms"]["median"],
        cell["treatment_ms"]["median"],
        found["point"],
        found["low"],
        found["high"],
        "" if cell["proof"]["ok"] else "not proved",
        blocks=None if cell["exact"] else cell["n"],
        is_proved=cell["proof"]["ok"],
    )


def _setup(folder: Path, cells: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    try:
        plan = tomllib.loads((folder / PLAN).read_text(encoding="utf-8"))
        environment = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{folder}: {error}", "give a folder that firstflight run made") from None
    keep_alive = "keep-alive" if plan["keep_alive"] else "a connection per request"
    return {
        "compared": "; ".join(dict.fromkeys(map(words.comparison, cells))),
        "client": plan["client"],
        "engine": plan["engine"],
        "path": f"{plan['topology']}, {_link(plan, 'down')} down, {_link(plan, 'up')} up, "
        f"queue {plan['queue']}{' that marks' if plan.get('ecn') else ''}, "
        f"loss {plan['loss']:g}{_unsteady(plan)}, "
        f"middlebox {plan.get('middlebox', 'off')}",
        "servers": f"{keep_alive}, {_list(plan['cookies'])} cookies, {plan['scheme']}",
        "TCP": f"initial window {plan.get('initial_window', 10)}, {plan.get('congestion_control', 'cubic')}",
        "what if": plan.get("what_if", "off"),
        "processing": _processing(plan),
        "spread": f"{plan['repeats']} repeats, 95 % intervals",
        **{name: str(environment[name]) for name in ("kernel", "firstflight") if name in environment},
    }


def _link(plan: Mapping[str, Any], way: str) -> str:
    trace = plan.get(f"{way}_trace", "off")
    return _list(plan[way]) if trace == "off" else f"trace {PurePosixPath(trace).name.removesuffix('.gz')}"


def _unsteady(plan: Mapping[str, Any]) -> str:
    parts = ""
    if (burst := plan.get("loss_burst", "off")) != "off":
        parts = f" in bursts of {burst} packets that lose {plan['loss_in_burst']:g}"
    if jitter_ms := plan.get("jitter", 0):
        parts += f", jitter {jitter_ms:g} ms{' that reorders' if plan['reorder'] else ''}"
    if share := plan.get("duplicate", 0):
        parts += f", {share:g} twice"
    return parts


def _processing(plan: Mapping[str, Any]) -> str:
    servers = "" if plan.get("server_time", True) else ", servers at once"
    if plan["client"] != "loader":
        return f"the client's own{servers}"
    return f"as recorded, times {plan.get('processing', 1):g}{servers}"


def _list(values: list[Any] | Any) -> str:  # noqa: ANN401
    return ", ".join(map(str, values)) if isinstance(values, list) else str(values)

"""The data of interactive waterfalls, in a compact form from which the page's script draws the bars.

Each URL is stored once per page, in a table that the page's waterfalls share: a page is shown at many RTTs.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from firstflight.analysis import SIDES, CellPair, words
from firstflight.analysis.critical_path.explanation import Explanation, median_load
from firstflight.analysis.records import Cell, Side
from firstflight.report.figures.theme import FONT, SCHEMA, Spec, field, layer
from firstflight.results import LoadRecord, RequestRow
from firstflight.text import visible

PHASES = ("queued", "connect", "wait", "receive")
"""Waiting for a connection; opening one; waiting for the first byte; receiving."""

PHASE_NAMES = {
    "queued": "waiting for a connection",
    "connect": "connecting",
    "wait": "waiting for the answer",
    "receive": "receiving",
}
"""Names of phases in views."""

Request = RequestRow
RowKey = tuple[str, int]


@dataclass(frozen=True)
class Bar:
    """One phase of one request, from `start_ms` to `end_ms` after navigation start."""

    row: RowKey
    phase: str
    start_ms: float
    end_ms: float


def bars(requests: Sequence[Request]) -> Iterator[Bar]:
    """The phases of a load's requests; phases without time are left out."""
    for row, request in rows(requests).items():
        for phase, (start_ms, end_ms) in phases(request).items():
            if end_ms > start_ms:
                yield Bar(row, phase, start_ms, end_ms)


def phases(request: Request) -> dict[str, tuple[float, float]]:
    """Start and end of each phase of a request, ms. A request that broke off has none after its last event.

    Connecting ends when the request is written. With TFO that is before the handshake ends.
    """
    events = moments(request)
    found = {}
    for phase, begin, end in zip(PHASES, events, events[1:], strict=False):
        if begin is not None and end is not None:
            found[phase] = (float(begin), max(float(begin), float(end)))
    return found


def moments(request: Request) -> tuple[float | None, ...]:
    """When each phase of a request begins and, last, when the last one ends, ms; `None`: not known."""
    sent = request["sent_ms"]
    start = request["connect_start_ms"] if request["connect_start_ms"] is not None else sent
    connected = sent if sent is not None else request["connect_end_ms"]
    return (request["queued_ms"], start, connected, request["first_byte_ms"], request["end_ms"])


def broke_off(requests: Sequence[Request]) -> Iterator[tuple[RowKey, float]]:
    """Requests without a complete response, with the time of their last event, ms."""
    for row, request in rows(requests).items():
        if request["end_ms"] is None:
            yield (
                row,
                max(_begun(request), default=0.0),
            )


def rows(requests: Sequence[Request]) -> dict[RowKey, Request]:
    """Requests by URL and by how often the URL came before: a row is the same URL in every load."""
    seen: Counter[str] = Counter()
    found: dict[RowKey, Request] = {}
    for request in sorted(requests, key=lambda request: int(request["index"])):
        url = str(request["url"])
        found[url, seen[url]] = request
        seen[url] += 1
    return found


def row_order(baseline: Sequence[Request], treatment: Sequence[Request]) -> list[RowKey]:
    """Rows from top to bottom: by start in the baseline, then rows that only the other load has."""
    first, second = _by_start(baseline), _by_start(treatment)
    known = set(first)
    return [*first, *(row for row in second if row not in known)]


def _begun(request: Request) -> list[float]:
    """The known times at which a phase of a request began, ms."""
    known = (request["queued_ms"], request["connect_start_ms"], request["sent_ms"], request["first_byte_ms"])
    return [float(moment) for moment in known if moment is not None]


def _by_start(requests: Sequence[Request]) -> list[RowKey]:
    found = rows(requests)
    return sorted(found, key=lambda row: (_start_ms(found[row]), int(found[row]["index"])))


def _start_ms(request: Request) -> float:
    return min(_begun(request), default=float("inf"))


LONGEST_URL = 300
"""Longer URLs are cut, characters."""


@dataclass
class Labels:
    """The labels of a page's rows: `[URL, index of its origin, MIME type]` each."""

    origins: list[str] = dataclasses.field(default_factory=list)
    labels: list[tuple[str, int, str]] = dataclasses.field(default_factory=list)
    _places: dict[RowKey, int] = dataclasses.field(default_factory=dict)

    def place(self, row: RowKey, request: Request) -> int:
        """The index of a row's label, which is added if it is new."""
        if row not in self._places:
            self._places[row] = len(self.labels)
            origin = _short(str(request["origin"]))
            if origin not in self.origins:
                self.origins.append(origin)
            mime = _short(str(request["mime"] or ""))
            self.labels.append((_short(row[0]), self.origins.index(origin), mime))
        return self._places[row]

    def to_json(self) -> dict[str, object]:
        """The labels in the form that the script reads."""
        return {"origins": self.origins, "labels": self.labels}


@dataclass(frozen=True)
class Waterfall:
    """One waterfall.

    Attributes:
        page: The page, whose labels its rows use.
        heading: Page, RTT and effect in words.
        small_print: Which loads are drawn.
        data: The data for the script: `rows` (label of each row, from top to bottom) and, for each side, its
            `name`, `plt`, `requests` (row, five moments, connection, status, bytes) and `path` (row,
            component, start, end). Times are ms after navigation start; null: not known.
    """

    page: str
    heading: str
    small_print: str
    data: dict[str, object]


def waterfalls(
    pairs: Sequence[CellPair],
    cells: Sequence[Cell],
    explanations: Sequence[Explanation] = (),
) -> tuple[dict[str, Labels], list[Waterfall]]:
    """The waterfalls of all pairs that have a paired block, and the labels of each page.

    Args:
        pairs: The cell pairs.
        cells: Their entries in the summary, in the same order.
        explanations: Of those pairs that can be explained; their critical paths are marked.
    """
    labels: dict[str, Labels] = {}
    explained = {id(found.pair): found for found in explanations}
    varying = words.varying(cells)
    found = []
    for pair, cell in zip(pairs, cells, strict=True):
        if cell["n"]:
            of_page = labels.setdefault(pair.key.page, Labels())
            found.append(_waterfall(pair, cell, varying, of_page, explained.get(id(pair))))
    return labels, found


def _waterfall(
    pair: CellPair, cell: Cell, varying: Sequence[str], labels: Labels, why: Explanation | None
) -> Waterfall:
    loads = {side: median_load(pair.loads(side)) for side in SIDES}
    order = row_order(*(loads[side]["requests"] for side in SIDES))
    requests = {row: request for side in SIDES for row, request in rows(loads[side]["requests"]).items()}
    places = {row: n for n, row in enumerate(order)}
    phrases = pair.phrases
    data: dict[str, object] = {
        "rows": [labels.place(row, requests[row]) for row in order],
        "sides": {side: {"name": phrases[side], **_side(loads[side], places, side, why)} for side in SIDES},
    }
    return Waterfall(
        pair.key.page, _heading(cell, words.variant(cell, varying)), _small_print(pair, cell, loads), data
    )


def _side(
    load: LoadRecord, places: Mapping[RowKey, int], side: Side, why: Explanation | None
) -> dict[str, object]:
    found = rows(load["requests"])
    at = {int(request["index"]): places[row] for row, request in found.items()}
    return {
        "plt": _round(load["load"]["plt_ms"]),
        "requests": [[places[row], *_request(request)] for row, request in found.items()],
        "path": list(_path(load, side, why, at)),
    }


def _request(request: Request) -> Iterator[float | int | None]:
    yield from map(_round, moments(request))
    yield from (request["connection"], request["status"], request["wire_bytes"])


def _path(
    load: LoadRecord, side: Side, why: Explanation | None, at: Mapping[int, int]
) -> Iterator[tuple[int, str, float | None, float | None]]:
    """The critical path, if the explanation is of the load that is drawn."""
    explained = why.loads.get(side) if why else None
    if explained is None or explained.load_id != load["load"]["load_id"]:
        return
    for part in explained.path.segments:
        if part.request in at:
            name = words.COMPONENT_NAMES[part.component]
            yield at[part.request], name, _round(part.start_ms), _round(part.end_ms)


def _heading(cell: Cell, variant: str) -> str:
    where = f"{cell['page']} at {words.rtt(cell['rtt_ms'])} ms RTT" + (f" ({variant})" if variant else "")
    return f"{where}: {words.medians(cell)} ({words.effect(cell)})"


def _small_print(pair: CellPair, cell: Cell, loads: Mapping[Side, LoadRecord]) -> str:
    blocks = " and ".join(f"{pair.phrases[side]} block {loads[side]['load']['block']}" for side in SIDES)
    return f"Drawn is the load whose PLT is nearest the median of its side: {blocks}. {words.caption(cell)}."


def _round(ms: float | None) -> float | None:
    return None if ms is None else round(float(ms), 1)


def _short(content: str) -> str:
    seen = visible(content[:LONGEST_URL])
    return seen if len(content) <= LONGEST_URL else seen[:-1] + words.ELLIPSIS


DATASETS = ("rects", "links", "lines", "crosses")
"""Phases and the critical path; its links between rows; load events; requests that broke off."""

_INK, _SOFT, _GRID = "var(--ink)", "var(--soft)", "var(--line)"
"""Colours of the page's style sheet, so that a panel is light or dark like the page."""

_LOOK: Spec = {"clip": True, "aria": False}
_LABEL = "format(datum.value, '~f') + ' s'"


def panel() -> Spec:
    """The bars. Signals: `from_s` and `to_s` (the visible time), `row_count`."""
    x = _time({"labels": False, "ticks": False, "domain": False, "title": None, "tickCount": 6})
    y, bottom = _rows(), {"field": "bottom"}
    fill, dash = _as_it_is("fill"), _as_it_is("dash")
    opacity = field("opacity", scale=None)
    rects = {"x": x, "x2": {"field": "end"}, "y": y, "y2": bottom, "fill": fill, "opacity": opacity}
    cross: Spec = {"shape": "cross", "angle": 45, "filled": True, "opacity": 1}
    layers = (
        _of("rects", layer("rect", rects, **_LOOK)),
        _of("links", layer("rule", {"x": x, "y": y, "y2": bottom}, color=_INK, **_LOOK)),
        _of("lines", layer("rule", {"x": x, "stroke": fill, "strokeDash": dash}, strokeWidth=1.5, **_LOOK)),
        _of("crosses", layer("point", {"x": x, "y": y, "fill": fill}, **cross, **_LOOK)),
    )
    return _document({"layer": layers}, {name: [] for name in DATASETS}, {})


def axis() -> Spec:
    """The axis above the bars, which stays visible while they scroll."""
    look = {"orient": "top", "title": None, "tickCount": 6, "grid": False, "labelFlush": True}
    nothing = layer("point", {"x": _time({**look, "labelExpr": _LABEL})}, aria=False)
    return _document({"layer": [_of("nothing", nothing)]}, {"nothing": []}, {"top": 22})


def _of(name: str, marks: Spec) -> Spec:
    return {"data": {"name": name}, **marks}


def _as_it_is(name: str) -> Spec:
    """A channel whose values are literally in the data: colours, dashes."""
    return {"field": name, "type": "nominal", "scale": None}


def _time(look: Spec) -> Spec:
    scale = {"domain": [{"expr": "from_s"}, {"expr": "to_s"}], "nice": False, "zero": False}
    return field("start", axis=look, scale=scale)


def _rows() -> Spec:
    return field(
        "top", axis=None, scale={"domain": [0, {"expr": "row_count"}], "nice": False, "reverse": True}
    )


def _document(figure: Spec, data: dict[str, list[Any]], padding: dict[str, int]) -> Spec:
    sides = dict.fromkeys(("left", "right", "top", "bottom"), 0)
    return {
        "$schema": SCHEMA,
        **figure,
        "params": [
            {"name": "from_s", "value": 0},
            {"name": "to_s", "value": 1},
            {"name": "row_count", "value": 1},
        ],
        "datasets": data,
        "autosize": {"type": "none"},
        "padding": {**sides, **padding},
        "background": "transparent",
        "config": {
            "font": FONT,
            "view": {"stroke": None},
            "axis": {
                "aria": False,
                "domainColor": _GRID,
                "gridColor": _GRID,
                "tickColor": _GRID,
                "labelColor": _SOFT,
                "labelFontSize": 11,
            },
        },
    }

"""Finds errors in the logs of the original experiment that its table does not show.

First by load, then for the whole run. A finding is one error and the line that shows it.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from firstflight.course.client_logs import HOME_DELAY_MS, CourseCell, CourseLoad, change, line_of, run_of
from firstflight.pages.readers.fetchlog import Response, Transaction
from firstflight.text import plural

_SHORT = 0.5
"""A load with fewer requests than this share of its page's median is truncated."""
_STALL_MS = 1_000.0
"""An https request that takes longer than this, and longer than every other request, stalled."""
_START_MS = 300.0
"""A browser that takes longer than this to start distorts the page load time."""
_OTHER = 0.05
"""Share of requests by which two compared loads may differ."""
_APART = 5.0
"""Difference of printed and matched, in percentage points, from which there is a finding."""
_SMALL = 3.0
"""A null effect below this counts as noise, percent."""


def check_course_run(cells: Sequence[CourseCell]) -> list[Finding]:
    """All errors of a run: first those of cells, then those of the whole run."""
    checks = (
        _pairing,
        _null,
        _crashes,
        _truncated,
        _unfinished,
        _other_requests,
        _stalls,
        _start,
        _types,
        _missing,
    )
    found = [finding for check in checks for cell in cells for finding in check(cell, cells)]
    return [*found, *check_design(cells)]


def _pairing(cell: CourseCell, _: Sequence[CourseCell]) -> Iterator[Finding]:
    if cell.printed is None or cell.matched is None:
        return
    if abs(cell.printed - cell.matched) >= _APART or cell.printed * cell.matched < 0:
        second = cell.plt(tfo=False, run=1), cell.plt(tfo=True, run=1)
        alone = "" if None in second else f"; second runs alone: {_percent(change(*second))}"
        message = (
            f"first run without against second run with: {_percent(cell.printed)}; "
            f"matched runs: {_percent(cell.matched)}{alone}"
        )
        yield Finding("unmatched runs", cell.subject, message, cell.off[0].file)


def _null(cell: CourseCell, _: Sequence[CourseCell]) -> Iterator[Finding]:
    if cell.null is not None and cell.printed is not None and abs(cell.null) >= _SMALL:
        first, second = (cell.plt(tfo=False, run=run) for run in (0, 1))
        message = (
            f"without TFO: first run {first:,.0f} ms, second {second:,.0f}, {_percent(cell.null)}; "
            f"printed as TFO's: {_percent(cell.printed)}"
        )
        yield Finding("null effect", cell.subject, message, cell.off[1].file)


def _crashes(cell: CourseCell, cells: Sequence[CourseCell]) -> Iterator[Finding]:
    for load in cell.loads():
        if not load.log:
            yield _of(
                load, "crashed load", f"the browser died; nothing is left ({load.problem})", load.crash_line
            )
    if _is_first(cell, cells):
        late = [load for load in _loads(cell.page, cells) if load.crash_line]
        if late:
            how_many = plural(len(late), "load")
            message = f"in {how_many} the browser died after it had written its log: the times are complete"
            yield Finding("crashed load", cell.page, message, late[0].file, late[0].crash_line)


def _truncated(cell: CourseCell, cells: Sequence[CourseCell]) -> Iterator[Finding]:
    same = _loads(cell.page, cells)
    usual = statistics.median(_requests(load) for load in same) if same else 0
    for load in cell.loads():
        if load.log and _requests(load) < _SHORT * usual:
            yield _of(
                load,
                "truncated load",
                f"{plural(_requests(load), 'request')}; usual for this page: {usual:g}",
            )


def _unfinished(cell: CourseCell, cells: Sequence[CourseCell]) -> Iterator[Finding]:
    """Requests that were counted but not listed, since they had not ended when the browser wrote its log."""
    loads = _loads(cell.page, cells) if _is_first(cell, cells) else []
    cut = [load for load in loads if _left(load) > 0]
    if cut:
        worst = max(cut, key=_left)
        left = f"{_left(worst)} of {_requests(worst) + _left(worst)}"
        message = (
            f"in {len(cut)} of {len(loads)} loads requests had not ended when the log was written, no time "
            f"has them: {left} at {worst.label_ms:g} ms, {run_of(worst)}"
        )
        line = line_of(worst, "HttpNetworkTransaction.Count")
        yield Finding("truncated load", cell.page, message, worst.file, line)


def _other_requests(cell: CourseCell, _: Sequence[CourseCell]) -> Iterator[Finding]:
    """The two loads that the table compares fetched different resources."""
    off, on = cell.off.get(0), cell.on.get(1)
    if off is None or on is None or not off.log or not on.log:
        return
    before, after = _requests(off), _requests(on)
    if abs(after - before) > _OTHER * before:
        message = f"{before} requests without TFO are compared with {after} with it: not the same page"
        yield Finding("other requests", cell.subject, message, on.file, line_of(on, "<transactions>"))


def _left(load: CourseLoad) -> int:
    counted = load.log.stats.get("HttpNetworkTransaction.Count", 0) if load.log else 0
    return int(counted) - _requests(load)


def _stalls(cell: CourseCell, _: Sequence[CourseCell]) -> Iterator[Finding]:
    for load in cell.loads():
        stalled = _stalled(load)
        if not stalled:
            continue
        longest = max(stalled, key=lambda transaction: transaction.len_ms)
        message = (
            f"{len(stalled)} https request{'s' * (len(stalled) > 1)} of up to {longest.len_ms / 1000:.1f} s "
            f"({urlsplit(longest.url).hostname}); {_share(load, stalled)}"
        )
        yield _of(load, "https stall", message, load.line_of(longest))


def _stalled(load: CourseLoad) -> list[Transaction]:
    if not load.log:
        return []
    clear = [t.len_ms for t in load.log.transactions if not t.url.startswith("https:")]
    limit = max([_STALL_MS, *clear])
    return [t for t in load.log.transactions if t.url.startswith("https:") and t.len_ms > limit]


def _share(load: CourseLoad, stalled: list[Transaction]) -> str:
    """The effect of the stalls on the printed time."""
    assert load.log and load.plt_ms is not None
    last = load.log.transactions[-1]
    if last in stalled:
        return f"one of them ends the load, at {load.plt_ms:,.0f} ms"
    begun_after = [t for t in load.log.transactions if t.start_ms >= min(s.end_ms for s in stalled)]
    return f"{len(begun_after)} of {_requests(load)} requests begin only after one, of {load.plt_ms:,.0f} ms"


def _start(cell: CourseCell, _: Sequence[CourseCell]) -> Iterator[Finding]:
    for load in cell.loads():
        if load.start_ms is not None and load.start_ms > _START_MS:
            message = f"the first request begins at {load.start_ms:,.0f} ms, of {load.plt_ms:,.0f}"
            yield _of(load, "start-up", message, None)


def _types(cell: CourseCell, cells: Sequence[CourseCell]) -> Iterator[Finding]:
    loads = _loads(cell.page, cells) if _is_first(cell, cells) else []
    types = [response.mime for load in loads for response in _answers(load) if response.mime]
    if len(types) > 1 and set(types) == {"text/html"}:
        message = f"all {len(types)} answers in {len(loads)} loads are text/html, style sheets and images too"
        yield Finding("types", cell.page, message, loads[0].file, line_of(loads[0], "<responses>"))


def _missing(cell: CourseCell, cells: Sequence[CourseCell]) -> Iterator[Finding]:
    loads = _loads(cell.page, cells) if _is_first(cell, cells) else []
    codes = [response.status for load in loads for response in _answers(load)]
    if missing := codes.count(404):
        message = f"{missing} of {len(codes)} answers in {len(loads)} loads are 404: the page was not whole"
        yield Finding("missing files", cell.page, message, loads[0].file, line_of(loads[0], "file not found"))


def _requests(load: CourseLoad) -> int:
    return len(load.log.transactions) if load.log else 0


def _answers(load: CourseLoad) -> list[Response]:
    return load.log.responses if load.log else []


def _loads(page: str, cells: Sequence[CourseCell]) -> list[CourseLoad]:
    """Every load of a page that has a log."""
    return [load for cell in cells if cell.page == page for load in cell.loads() if load.log]


def _is_first(cell: CourseCell, cells: Sequence[CourseCell]) -> bool:
    """Whether this is the cell at which a finding about the page, and not a path, is reported."""
    return cell is next(other for other in cells if other.page == cell.page)


def _of(load: CourseLoad, kind: str, message: str, line: int | None = None) -> Finding:
    subject = f"{load.page} {load.label_ms:g} ms, {run_of(load)}"
    return Finding(kind, subject, message, load.file, line)


def _percent(value: float | None) -> str:
    return "nothing" if value is None else f"{value:+.1f} %"


def check_design(cells: Sequence[CourseCell]) -> Iterator[Finding]:
    """All errors of the design of a run."""
    loads = [load for cell in cells for load in cell.loads()]
    top = loads[0].file.parent.parent
    labels = sorted({(load.label_ms, load.rtt_ms) for load in loads})
    named = ", ".join(f"{label:g} is {rtt:g} ms" for label, rtt in labels)
    yield Finding("path", "", f"{named}: the client's link adds {HOME_DELAY_MS:g} ms each way", top)
    starts = [load.start_ms for load in loads if load.start_ms is not None]
    if starts:
        message = f"{min(starts):,.0f} to {max(starts):,.0f} ms of every load passed before the first request"
        yield Finding("start-up", "", message, top)
    yield from _proof(loads)
    yield Finding("design", "", _order(cells), top)
    yield from _connections(loads)


def _proof(loads: Sequence[CourseLoad]) -> Iterator[Finding]:
    """Reports that a log's only evidence of TFO is the browser's own switch."""
    switched = [load for load in loads if load.tfo and load.log and "tfo.supported" in load.log.stats]
    if switched:
        message = (
            f"tfo.supported in {len(switched)} logs is the browser's own switch; no log says whether a SYN "
            "carried data, and since Linux 4.15 the sysctl that run.sh sets reaches no host: on is then off"
        )
        yield Finding("no proof", "", message, switched[0].file, line_of(switched[0], "tfo.supported"))


def _order(cells: Sequence[CourseCell]) -> str:
    runs = {len(loads) for cell in cells for loads in (cell.off, cell.on)}
    how_many = "-".join(str(count) for count in (min(runs), max(runs))[: len(runs)])
    return f"{how_many} loads of a cell, all without TFO before all with it: no spread, no interval"


def _connections(loads: Sequence[CourseLoad]) -> Iterator[Finding]:
    counted = [(load, load.log) for load in loads if load.log and load.log.stats.get("tcp.connect")]
    if counted:
        opened = sum(log.stats["tcp.connect"] for _, log in counted)
        asked = sum(len(log.transactions) for _, log in counted)
        first = counted[0][0]
        message = f"{opened} connections for {asked} requests: the server closes after each answer (HTTP/1.0)"
        yield Finding("design", "", message, first.file, line_of(first, "c:tcp.connect:"))


KINDS = {
    "lost sign": "printed as a gain, was a loss",
    "arithmetic": "the printed improvement does not follow from the printed times",
    "another measure": "the column is not (without - with) / without",
    "unit": "milliseconds under seconds",
    "unmatched runs": "the first run without is compared with the second run with",
    "null effect": "the same change without TFO: the effect of warming up alone",
    "crashed load": "the browser died; what it left is no load",
    "truncated load": "the browser fetched less than elsewhere, or quit before its requests had ended",
    "other requests": "the loads that are compared did not fetch the same",
    "https stall": "https requests to a server without https decide the time",
    "start-up": "the browser's start is inside the page load time",
    "missing logs": "rows without a log",
    "path": "the round-trip time was not what the column says",
    "types": "style sheets served as text/html are refused",
    "missing files": "the servers lacked files that the page requested",
    "no proof": "nothing shows that TFO was used",
    "design": "how the loads were made",
}
"""Every kind of finding with its meaning."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One error.

    Attributes:
        kind: One of `KINDS`.
        subject: The page and path; empty if it concerns the whole run.
        message: The error, with its numbers.
        file: The file that shows it.
        line: Line in the file; `None`: the whole file.
    """

    kind: str
    subject: str
    message: str
    file: Path
    line: int | None = None

    @property
    def place(self) -> str:
        """File and line in the form that compilers print."""
        return str(self.file) if self.line is None else f"{self.file}:{self.line}"

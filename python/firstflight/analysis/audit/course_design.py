"""What is wrong with a run as a whole, whatever its numbers: path, start-up, proof, order, connections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from firstflight.analysis.audit.course_run import HOME_DELAY_MS, CourseCell, CourseLoad, line_of
from firstflight.analysis.audit.finding import Finding


def check_design(cells: Sequence[CourseCell]) -> Iterator[Finding]:
    """Everything that concerns all loads of a run."""
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
    """The only word on TFO in a log is the browser's own switch."""
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

"""The critical path of a load: the chain of requests that ended with the load event.

It goes backwards from the load event. The load event came when the last blocking resource settled. Before
that were its processing, its response, its request, its handshake, its wait for a connection and its
discovery. Its initiator caused the discovery, so the path continues there, up to navigation start. If the
main thread was busy with other resources, the path continues with the one whose arrival started that work.
The segments follow one another without a gap, so they add up to the PLT. `docs/explain.md` has the rules.
Both engines' rows are valid input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from firstflight.analysis.critical_path.stages import (
    Component,
    Load,
    Row,
    Segment,
    Wait,
    ended_ms,
    explain_wait,
    fetch,
    started_ms,
    syn_timeouts_ms,
    times,
)
from firstflight.model.page import Initiator, Page, Resource
from firstflight.results import LoadRecord

COMPONENTS: tuple[Component, ...] = get_args(Component)
"""All components, in the order of views."""

RoundTrip = Literal["tcp", "tls", "quic", "request", "window", "retransmission"]
"""What a path waited a round trip for: a handshake, a response, the congestion window, a lost SYN."""

_ROUND_TRIPS: dict[RoundTrip, Component] = {
    "tcp": "tcp",
    "tls": "tls",
    "quic": "quic",
    "request": "propagation",
    "window": "window",
}

_TOLERANCE_MS = 0.5
"""Times this near count as equal: rows are rounded, and a client wakes up slightly late."""


@dataclass(frozen=True, slots=True)
class Handshake:
    """A TCP handshake that the path waited for and that TFO could have saved.

    Attributes:
        request: Index of the resource whose request opened the connection.
        waited_ms: How long the path waited for it, without the time-outs of lost SYNs.
        rtt_ms: The part of `waited_ms` that is one RTT; the SYN spent the rest in queues.
        inside_wait: Whether the path waited for a connection, and the handshake was an earlier request's.
    """

    request: int
    waited_ms: float
    rtt_ms: float
    inside_wait: bool


@dataclass(frozen=True)
class CriticalPath:
    """What a PLT was spent on.

    Attributes:
        plt_ms: The PLT.
        segments: From navigation start to the load event, without gaps.
        waits: What happened during the path's waits for a connection.
        handshakes: TCP handshakes on the path, and within its waits for a connection.
        rtt_ms: The path's round-trip time.
        timeouts_ms: By how much lost SYNs delayed connections on the path.
    """

    plt_ms: float
    segments: tuple[Segment, ...]
    waits: tuple[Wait, ...]
    handshakes: tuple[Handshake, ...]
    rtt_ms: float
    timeouts_ms: float

    @property
    def round_trips(self) -> dict[RoundTrip, float]:
        """Round trips that it waited for, by reason; empty if the path has no RTT."""
        if self.rtt_ms <= 0:
            return {}
        spent = self.spent_ms()
        waited: dict[RoundTrip, float] = {
            kind: spent.get(part, 0.0) - (self.timeouts_ms if kind == "tcp" else 0.0)
            for kind, part in _ROUND_TRIPS.items()
        }
        waited["retransmission"] = self.timeouts_ms
        return {kind: ms / self.rtt_ms for kind, ms in waited.items() if ms > _TOLERANCE_MS}

    @property
    def could_save_ms(self) -> float:
        """What TFO could save at most if nothing else changed: the time waited for handshakes."""
        return sum(handshake.waited_ms for handshake in self.handshakes)

    @property
    def could_save_rtts_ms(self) -> float:
        """As `could_save_ms`, but at most an RTT per handshake: without the time of SYNs in queues."""
        return sum(handshake.rtt_ms for handshake in self.handshakes)

    @property
    def requests(self) -> list[int]:
        """Indices of the resources on the path, in order of their first segment."""
        return list(dict.fromkeys(segment.request for segment in self.segments))

    def spent_ms(self, request: int | None = None) -> dict[Component, float]:
        """Time per component, of one request or of all; components without time are left out."""
        found = dict.fromkeys(COMPONENTS, 0.0)
        for segment in self.segments:
            if request in (None, segment.request):
                found[segment.component] += segment.ms
        return {component: ms for component, ms in found.items() if ms > 0}


def critical_path(record: LoadRecord, page: Page) -> CriticalPath:
    """The critical path of a load.

    Args:
        record: A load that ended ok.
        page: The page as it was loaded.

    Raises:
        ValueError: The load has no PLT, or no request that began.
    """
    load = Load(record, page)
    if load.row["plt_ms"] is None or not load.requests:
        raise ValueError(f"{load.row['load_id']}: has no load event to explain")
    plt_ms = float(load.row["plt_ms"])
    segments = tuple(_Walk(load, plt_ms).back())
    stretches = [segment for segment in segments if segment.component == "connection"]
    waits = tuple(explain_wait(load, segment) for segment in stretches if segment.ms > _TOLERANCE_MS)
    handshakes = [*_handshakes(load, segments), *(found for wait in waits for found in _inside(load, wait))]
    opened = {segment.request: segment.ms for segment in segments if segment.component == "tcp"}
    lost = (min(ms, syn_timeouts_ms(load, load.by_index[request])) for request, ms in opened.items())
    return CriticalPath(plt_ms, segments, waits, tuple(handshakes), load.rtt_ms, sum(lost))


def _handshakes(load: Load, segments: Iterable[Segment], *, inside_wait: bool = False) -> Iterator[Handshake]:
    """Handshakes that TFO could save. A connection whose SYN carried the request has none."""
    for segment in segments:
        row = load.by_index[segment.request]
        if segment.component == "tcp" and not load.carried_in_syn(row):
            waited_ms = max(0.0, segment.ms - syn_timeouts_ms(load, row))
            yield Handshake(segment.request, waited_ms, min(waited_ms, load.rtt_ms), inside_wait)


def _inside(load: Load, wait: Wait) -> Iterator[Handshake]:
    """Savable handshakes during a wait. TFO would have ended the opening of a connection at once."""
    if wait.opening:
        yield Handshake(wait.request, min(wait.ms, load.rtt_ms), min(wait.ms, load.rtt_ms), inside_wait=True)
    else:
        yield from _handshakes(load, wait.handshakes, inside_wait=True)


class _Walk:
    """Goes backwards from the load event. Each step begins where the one before began, or earlier."""

    def __init__(self, load: Load, plt_ms: float) -> None:
        self._load = load
        self._tasks = timetable(load)
        self._done_ms = {task.request: task.end_ms for task in reversed(self._tasks)}
        self._at_ms = plt_ms
        self._segments: list[Segment] = []

    def back(self) -> list[Segment]:
        """The path, in order of time."""
        seen: set[int] = set()
        row: Row | None = self._arrival(self._last())
        body_bytes: int | None = None
        while row is not None and int(row["index"]) not in seen:
            seen.add(int(row["index"]))
            self._fetch(row, body_bytes)
            row, body_bytes = self._discoverer(row)
        self._spend(self._segments[-1].request if self._segments else 0, 0.0)
        return self._segments[::-1]

    def _last(self) -> Row:
        """The resource that the load event waited for: of those that block it, the last one to settle."""
        load, plt_ms = self._load, self._at_ms
        blocking = [row for row in load.requests if _blocks(load.resource(row))] or load.requests
        ended = [row for row in blocking if row["end_ms"] is not None]
        ended = [row for row in ended if self._settled_ms(row) <= plt_ms + _TOLERANCE_MS]
        broken = [row for row in blocking if row["end_ms"] is None and started_ms(row) < plt_ms]
        last = max(ended, key=self._settled_ms, default=None)
        explained = last is not None and self._settled_ms(last) >= plt_ms - _TOLERANCE_MS
        if last is None or (broken and load.is_modelled and not explained):
            return max(broken or load.requests, key=lambda row: times(row)[-1])
        return last

    def _arrival(self, row: Row) -> Row:
        """Goes back through the main thread's tasks; returns the resource whose arrival started them."""
        order = [task.request for task in self._tasks]
        if int(row["index"]) not in order:
            return row
        place = order.index(int(row["index"]))
        if abs(self._tasks[place].end_ms - self._at_ms) > _TOLERANCE_MS:
            return row
        for task in reversed(self._tasks[: place + 1]):
            self._spend(task.request, task.start_ms)
            if not task.waited:
                break
        return self._load.by_index[task.request]

    def _fetch(self, row: Row, body_bytes: int | None) -> None:
        """Goes back to the discovery of a request. Time after its response was spent by the client."""
        segments = fetch(self._load, row, self._at_ms, body_bytes)
        if segments:
            self._spend(int(row["index"]), segments[-1].end_ms)
            self._segments += segments[::-1]
            self._at_ms = segments[0].start_ms

    def _discoverer(self, row: Row) -> tuple[Row | None, int | None]:
        """Goes back to the initiator of a request. Also returns the bytes of its body so far, if not all."""
        above = self._load.initiator(row)
        if above is None:
            return None, None
        known = self._known(row, above)
        if known is not None:
            self._spend(int(row["index"]), self._at_ms - known.delay_ms)
        if known is not None and (held := self._held_by(known)) is not None:
            return self._arrival(held), None
        if known is None or known.via in ("style", "script"):
            return self._arrival(above), None
        streaming = above["end_ms"] is None or self._at_ms < above["end_ms"]
        return above, known.at_byte if streaming else None

    def _held_by(self, known: Initiator) -> Row | None:
        """The resource that the request had to wait for, if it started when that resource had settled."""
        row = None if known.after is None else self._load.by_index.get(known.after)
        if row is None or row["end_ms"] is None:
            return None
        return row if abs(self._settled_ms(row) - self._at_ms) <= _TOLERANCE_MS else None

    def _settled_ms(self, row: Row) -> float:
        """When a complete resource, its processing included, was finished."""
        done_ms = self._done_ms.get(int(row["index"]))
        return ended_ms(row) if done_ms is None else done_ms

    def _known(self, row: Row, above: Row) -> Initiator | None:
        """The page's initiator of a request; `None` for a browser, which reports no way and no delay."""
        resource = self._load.resource(row)
        found = resource.initiator if resource and self._load.is_modelled else None
        return found if found and found.resource == above["index"] else None

    def _spend(self, request: int, start_ms: float) -> None:
        """Adds the client's own time, from `start_ms` to the current position."""
        start_ms = max(0.0, start_ms)
        if start_ms < self._at_ms:
            self._segments.append(Segment(request, "processing", start_ms, self._at_ms))
            self._at_ms = start_ms


def _blocks(resource: Resource | None) -> bool:
    return resource is None or resource.blocks_load


_RUNS = ("document", "frame", "style", "script")


@dataclass(frozen=True, slots=True)
class Task:
    """The processing of one resource.

    Attributes:
        request: Index of the resource.
        start_ms: Start, ms after navigation start.
        end_ms: End, ms after navigation start.
        waited: Whether the thread was busy when the resource arrived, so that another task came first.
    """

    request: int
    start_ms: float
    end_ms: float
    waited: bool


def timetable(load: Load) -> list[Task]:
    """The tasks of the main thread in order; empty for a client whose main thread is not known."""
    if not load.is_modelled:
        return []
    processed = _processed(load.page)
    arrived = [row for row in load.by_index.values() if row["end_ms"] is not None and not row.get("error")]
    tasks: list[Task] = []
    free_ms = 0.0
    for row in sorted(arrived, key=ended_ms):
        resource = load.resource(row)
        if resource is None or row["index"] not in processed:
            continue
        start_ms = max(free_ms, ended_ms(row))
        waited = free_ms > ended_ms(row)
        free_ms = start_ms + resource.cpu_ms
        tasks.append(Task(int(row["index"]), start_ms, free_ms, waited))
    return tasks


def _processed(page: Page) -> set[int]:
    """Resources that the main thread processes (`is_processed` in `crates/loader/src/plan.rs`)."""
    initiators = [resource.initiator for resource in page.resources if resource.initiator]
    asks = {initiator.resource for initiator in initiators if initiator.via in ("style", "script")}
    redirects = {initiator.resource for initiator in initiators if initiator.via == "redirect"}
    return {
        index
        for index, resource in enumerate(page.resources)
        if resource.cpu_ms > 0 or index in asks or (resource.kind in _RUNS and index not in redirects)
    }

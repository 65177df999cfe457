"""Finds what changed between two recordings of a page: matches requests by URL, and keeps real changes.

Two recordings of one page are never equal: servers take other times, documents have other lengths, queries
and file names contain other numbers. So requests are matched by five forms of their URL, each less strict
than the one before. A difference counts only if it is larger than that between two recordings of an unchanged
page. With several recordings of a side, a difference must exist for every pair of them. Its size is then that
of the pair that differs least.

`Changes.version` is the base with some of the changes applied. It has nothing else of the head, so noise in
the head is in no page that is loaded. Left out: the order of requests in the head, its times where they count
as noise, and, for a request that both pages have, whether it blocks the load event.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heapify, heappop, heappush
from statistics import median
from typing import Literal
from urllib.parse import parse_qsl, urlsplit

from firstflight.errors import PageInputError
from firstflight.model.page import ONE_SEGMENT_BYTES, Initiator, Page, Resource

NOISE_MS = 50.0
"""Times of a request that differ by at most this between recordings count as equal, ms. The main thread's
work that importers infer from pauses is not longer, so that it alone is never a change."""

SAME_WITHIN_MS = 10.0
"""Versions of a page whose times differ by at most this are the same, ms."""

_NOISE_SHARE = 0.01
_ALWAYS_BYTES = 10_000
"""Lengths that differ by less than a segment, or by less than 1 % and 10 kB, count as equal."""

_SAME_PAGE_SHARE = 0.5
"""Pages with different URLs are versions of one page if this share of the smaller one's requests match."""

What = Literal["added", "removed", "redirect", "larger", "smaller", "slower", "faster", "moved", "status"]
"""How a request changed. `slower` and `faster` are about its server or the main thread's work on it."""


@dataclass(frozen=True)
class Change:
    """How one request changed; or a request that is new or gone, with all requests that only it causes.

    Attributes:
        url: The request's URL in the head; if it was removed, in the base.
        what: Its changes, the most important first.
        details: The changes in words, with their numbers.
        others: URLs of the requests that were added or removed with it.
        base: Indices of its requests in the base.
        head: Indices of its requests in the head.
    """

    url: str
    what: tuple[What, ...]
    details: tuple[str, ...]
    others: tuple[str, ...] = ()
    base: tuple[int, ...] = ()
    head: tuple[int, ...] = ()
    fields: dict[str, object] = field(default_factory=dict, compare=False)

    @property
    def words(self) -> str:
        """The changes of the request, in one line."""
        return "; ".join(self.details)

    def to_json(self) -> dict[str, object]:
        """The change as data, with the requests that were added or removed with it."""
        return {
            "url": self.url,
            "what": list(self.what),
            "details": list(self.details),
            "others": list(self.others),
        }


_Node = tuple[Literal["base", "head"], int]
"""A request: the side that it is taken from, and its index in that page."""


@dataclass(frozen=True)
class Version:
    """A page: the base with some of the changes.

    Attributes:
        page: The page.
        nodes: Where each of its requests was taken from.
    """

    page: Page
    nodes: tuple[_Node, ...]

    def touched(self, made: Collection[Change]) -> set[int]:
        """Indices of the requests that the changes in `made` name."""
        named: set[_Node] = {("base", index) for change in made for index in change.base}
        named |= {("head", index) for change in made if not change.base for index in change.head}
        return {index for index, node in enumerate(self.nodes) if node in named}


@dataclass(frozen=True)
class Changes:
    """The changes between two versions of a page.

    Attributes:
        base: The first recording of the base.
        head: The first recording of the head.
        matched: Index in the head by index in the base, of matched requests.
        found: The changes, in the order of the requests in the head, then the removed ones.
        misjudged_ms: Error of the head's server times, ms, by host; positive: they are too long. See
            `_Sides.waited_longer_ms`.
    """

    base: Page
    head: Page
    matched: dict[int, int]
    found: tuple[Change, ...]
    misjudged_ms: dict[str, float] = field(default_factory=dict)

    def version(self, made: Collection[Change], name: str = "") -> Version:
        """The base with some of the changes applied.

        Args:
            made: Changes of `found`.
            name: Name of the page; empty: that of the base.
        """
        return _Merge(self, made).version(name or self.base.name)


def find_changes(bases: Sequence[Page], heads: Sequence[Page], noise_ms: float = NOISE_MS) -> Changes:
    """Finds the changes from base to head.

    Args:
        bases: One or more recordings of the base.
        heads: One or more recordings of the head.
        noise_ms: Times that differ by at most this count as equal, ms.

    Raises:
        PageInputError: They are not versions of one page.
    """
    base, head = bases[0], heads[0]
    matched = match(base, head)
    _refuse_another_page(base, head, matched)
    others = _Others(base, head, bases[1:], heads[1:])
    changed = [
        change
        for b, h in matched.items()
        if (change := _changed(_Sides(base, head, b, h, others), matched, noise_ms)) is not None
    ]
    added = _trees(head, {h for h in range(len(head.resources)) if others.is_added(h, matched)})
    removed = _trees(base, {b for b in range(len(base.resources)) if others.is_removed(b, matched)})
    came = [_added(base, head, tree) for tree in added]
    went = [_removed(base, tree) for tree in removed]
    found = sorted([*changed, *came], key=lambda change: change.head[0])
    return Changes(base, head, matched, (*found, *went), _misjudged_ms(base, head, matched, noise_ms))


def check_times(named: Sequence[tuple[str, Page]]) -> bool:
    """Whether the recordings have the times of servers.

    Args:
        named: The recordings with their names.

    Raises:
        PageInputError: Some have them and others do not.
    """
    timed = {name: any(resource.server_ms for resource in page.resources) for name, page in named}
    without = next((name for name, is_timed in timed.items() if not is_timed), None)
    if without is None:
        return True
    if not any(timed.values()):
        return False
    other = next(name for name, is_timed in timed.items() if is_timed)
    raise PageInputError(
        f"{without}: the recording tells no times of servers, and that of {other} does", WITH_TIMES
    )


WITH_TIMES = "record with firstflight record, or export a HAR whose entries have timings"
"""How to make a recording that has the times of servers."""
UNTIMED = "the recordings tell no times of servers: a slower server is not seen"
"""The warning when `check_times` finds none."""


def match(base: Page, head: Page) -> dict[int, int]:
    """Index in the head by index in the base, of the requests that both have."""
    matched: dict[int, int] = {final_document(base): final_document(head)}
    taken = set(matched.values())
    ours, theirs = _Seen(base, {}), _Seen(head, _renamed_host(base, head))
    for form in _FORMS:
        there: dict[object, list[int]] = defaultdict(list)
        for h in range(len(head.resources)):
            if h not in taken:
                there[form(theirs, h)].append(h)
        for b in range(len(base.resources)):
            if b not in matched and (found := there.get(form(ours, b))):
                matched[b] = found.pop(0)
                taken.add(matched[b])
    return dict(sorted(matched.items()))


def final_document(page: Page) -> int:
    """Index of the document, after its redirects."""
    after = {
        resource.initiator.resource: index
        for index, resource in enumerate(page.resources)
        if resource.initiator and resource.initiator.via == "redirect"
    }
    at = 0
    while at in after:
        at = after[at]
    return at


def _refuse_another_page(base: Page, head: Page, matched: dict[int, int]) -> None:
    one, other = (page.resources[final_document(page)].url for page in (base, head))
    if urlsplit(one)[1:3] == urlsplit(other)[1:3]:
        return
    share = (len(matched) - 1) / max(1, min(len(base.resources), len(head.resources)) - 1)
    if share < _SAME_PAGE_SHARE:
        raise PageInputError(
            f"{one[:80]} and {other[:80]} are different pages: {share:.0%} of their requests match",
            "give two recordings of one page, before and after the change",
        )


_HASHED = re.compile(
    r"(?<=[._-])[A-Za-z0-9_-]{8,}(?=\.[A-Za-z0-9]+$)|[0-9a-fA-F]{6,}|[0-9]+|[A-Za-z0-9_-]{20,}"
)
"""Parts of names that change with each build or response: hashes, versions, numbers, tokens."""


@dataclass(frozen=True)
class _Seen:
    """A page whose requests are matched.

    Attributes:
        page: The page.
        renamed: New names of hosts: in a head that was recorded on a preview's host, it becomes the base's.
    """

    page: Page
    renamed: dict[str, str]

    @cached_property
    def hops(self) -> set[int]:
        """Indices of the requests that were redirected."""
        return _hops(self.page)

    def host(self, netloc: str) -> str:
        """The host's name in the other page."""
        return self.renamed.get(netloc, netloc)


def _chained(seen: _Seen, index: int) -> object:
    """The URL that was requested first, if redirects led to this one. A redirect matches only a redirect."""
    start = index
    while (by := seen.page.resources[start].initiator) is not None and by.via == "redirect":
        start = by.resource
    return seen.page.resources[start].url, index in seen.hops


def _exact(seen: _Seen, index: int) -> object:
    return seen.page.resources[index].url, index in seen.hops


def _without_values(seen: _Seen, index: int) -> object:
    url = urlsplit(seen.page.resources[index].url)
    names = tuple(sorted(name for name, _ in parse_qsl(url.query, keep_blank_values=True)))
    return seen.host(url.netloc), url.path, names, index in seen.hops


def _without_hashes(seen: _Seen, index: int) -> tuple[object, ...]:
    url = urlsplit(seen.page.resources[index].url)
    path = _HASHED.sub("*", url.path)
    return seen.host(url.netloc), path, seen.page.resources[index].kind, index in seen.hops


def _without_numbers(seen: _Seen, index: int) -> object:
    netloc, *rest = _without_hashes(seen, index)
    return re.sub(r"\d+", "*", str(netloc)), *rest


_FORMS: tuple[Callable[[_Seen, int], object], ...] = (
    _chained,
    _exact,
    _without_values,
    _without_hashes,
    _without_numbers,
)
"""The forms of a request that must be equal for a match, the strictest first."""


def _hops(page: Page) -> set[int]:
    """Indices of the requests whose redirect was followed."""
    return {
        resource.initiator.resource
        for resource in page.resources
        if resource.initiator and resource.initiator.via == "redirect"
    }


def _renamed_host(base: Page, head: Page) -> dict[str, str]:
    ours, theirs = (urlsplit(page.resources[final_document(page)].url).netloc for page in (base, head))
    return {theirs: ours}


@dataclass(frozen=True)
class _Others:
    """Further recordings of both sides, matched with the first ones."""

    base: Page
    head: Page
    bases: Sequence[Page]
    heads: Sequence[Page]

    @cached_property
    def of_base(self) -> list[tuple[Page, dict[int, int]]]:
        """Each further base, with its index of a request by that in the first base."""
        return [(other, match(self.base, other)) for other in self.bases]

    @cached_property
    def of_head(self) -> list[tuple[Page, dict[int, int]]]:
        """Each further head, with its index of a request by that in the first head."""
        return [(other, match(self.head, other)) for other in self.heads]

    @cached_property
    def _in_other_bases(self) -> set[int]:
        return {h for other in self.bases for h in match(other, self.head).values()}

    @cached_property
    def _in_other_heads(self) -> set[int]:
        return {b for other in self.heads for b in match(self.base, other)}

    @cached_property
    def _rtts_ms(self) -> dict[int, dict[str, float]]:
        pages = (self.base, self.head, *self.bases, *self.heads)
        return {id(page): {host.host: host.rtt_ms for host in page.hosts} for page in pages}

    def rtt_ms(self, page: Page, resource: Resource) -> float:
        """The RTT to the host of a request according to a recording, ms; 0 if it has none."""
        return self._rtts_ms[id(page)].get(urlsplit(resource.url).hostname or "", 0.0)

    def is_added(self, h: int, matched: dict[int, int]) -> bool:
        """Whether every head has the request and no base has it."""
        in_all = all(h in known for _, known in self.of_head)
        return h not in matched.values() and h not in self._in_other_bases and in_all

    def is_removed(self, b: int, matched: dict[int, int]) -> bool:
        """Whether every base has the request and no head has it."""
        in_all = all(b in known for _, known in self.of_base)
        return b not in matched and b not in self._in_other_heads and in_all


@dataclass(frozen=True)
class _Sides:
    """One request in the recordings of both sides."""

    base: Page
    head: Page
    b: int
    h: int
    others: _Others

    @property
    def before(self) -> Resource:
        return self.base.resources[self.b]

    @property
    def now(self) -> Resource:
        return self.head.resources[self.h]

    def difference(self, name: str) -> float:
        """By how much a field is larger in the head, for the recordings that differ least; signed."""
        return self._least(lambda _, resource: float(getattr(resource, name)))

    def waited_longer_ms(self) -> float:
        """How much longer the server took in the head, as `difference`, ms; signed.

        A recording has the time that a request waited. Readers subtract the RTT to the host, which they
        estimate from handshakes. If that estimate is wrong in one recording, the waits still agree. So the
        smaller of the two differences counts, or 0 if their signs differ.
        """
        server = self._least(lambda _, resource: resource.server_ms)
        wait = self._least(lambda page, resource: resource.server_ms + self.others.rtt_ms(page, resource))
        return min(server, wait, key=abs) if server * wait > 0 else 0.0

    def delayed_ms(self) -> float:
        """How much longer the client paused before the request in the head, as `difference`, ms; signed."""
        return self._least(lambda _, resource: _delay_ms(resource))

    def _least(self, value: Callable[[Page, Resource], float]) -> float:
        before, now = [value(self.base, self.before)], [value(self.head, self.now)]
        before += [value(p, p.resources[at[self.b]]) for p, at in self.others.of_base if self.b in at]
        now += [value(p, p.resources[at[self.h]]) for p, at in self.others.of_head if self.h in at]
        if min(now) > max(before):
            return min(now) - max(before)
        return max(now) - min(before) if max(now) < min(before) else 0.0


_SIZES = (("body_bytes", "body"), ("header_bytes", "header fields"), ("request_bytes", "request"))


def _changed(sides: _Sides, matched: dict[int, int], noise_ms: float) -> Change | None:
    """The change of a request that both sides have; `None` if no difference counts."""
    before, now = sides.before, sides.now
    what: list[What] = []
    details: list[str] = []
    fields: dict[str, object] = {}
    waited, worked = sides.waited_longer_ms(), sides.difference("cpu_ms")
    times = (("server_ms", "server time", waited), ("cpu_ms", "main thread's work", worked))
    for name, words, more in times:
        if abs(more) > noise_ms:
            what.append("slower" if more > 0 else "faster")
            new = round(getattr(before, name) + more, 3)
            details.append(f"{words} {getattr(before, name):,.0f} to {new:,.0f} ms")
            fields[name] = new
    for name, words in _SIZES:
        more = sides.difference(name)
        size = abs(more)
        of = getattr(before, name)
        if size >= ONE_SEGMENT_BYTES and (size >= _ALWAYS_BYTES or size >= _NOISE_SHARE * of):
            what.append("larger" if more > 0 else "smaller")
            details.append(f"{words} {of / 1000:,.1f} to {(of + more) / 1000:,.1f} kB")
            fields[name] = of + round(more)
    if (before.status >= 400) != (now.status >= 400):
        what.append("status")
        details.append(f"status {before.status} to {now.status}")
        fields["status"] = now.status
    if abs(pause := sides.delayed_ms()) > noise_ms:
        what.append("slower" if pause > 0 else "faster")
        old = _delay_ms(before)
        details.append(f"pause before the request {old:,.0f} to {old + pause:,.0f} ms")
        fields["delay_ms"] = round(old + pause, 3)
    if _is_moved(sides, matched):
        what.append("moved")
        details.append(f"asked for by {_asks(sides.head, now)}, before by {_asks(sides.base, before)}")
        fields["initiator"] = True
    if not what:
        return None
    return Change(now.url, tuple(dict.fromkeys(what)), tuple(details), (), (sides.b,), (sides.h,), fields)


def _misjudged_ms(base: Page, head: Page, matched: dict[int, int], noise_ms: float) -> dict[str, float]:
    """Differences of server times, ms, by host, where requests waited equally long in both recordings."""
    ours, theirs = ({host.host: host.rtt_ms for host in page.hosts} for page in (base, head))
    servers: dict[str, list[float]] = defaultdict(list)
    for b, h in matched.items():
        before, now = base.resources[b], head.resources[h]
        host = urlsplit(now.url).hostname or ""
        if host == urlsplit(before.url).hostname and ours.get(host) and theirs.get(host):
            servers[host].append(now.server_ms - before.server_ms)
    found = {host: median(several) for host, several in servers.items()}
    return {
        host: more
        for host, more in found.items()
        if abs(more) > noise_ms >= abs(more + theirs[host] - ours[host])
    }


def _delay_ms(resource: Resource) -> float:
    return resource.initiator.delay_ms if resource.initiator else 0.0


def _is_moved(sides: _Sides, matched: dict[int, int]) -> bool:
    """Whether its initiator is another request, which both pages have. Inferred initiators do not count."""
    one, other = sides.before.initiator, sides.now.initiator
    if (
        one is None
        or other is None
        or one.inferred
        or other.inferred
        or sides.others.bases
        or sides.others.heads
    ):
        return False
    both = one.resource in matched and other.resource in matched.values()
    return both and matched[one.resource] != other.resource


def _asks(page: Page, resource: Resource) -> str:
    return page.resources[resource.initiator.resource].url if resource.initiator else "the navigation"


def _trees(page: Page, found: set[int]) -> list[list[int]]:
    """Added or removed requests, each with those that it causes; roots first, in page order."""
    trees: dict[int, list[int]] = {}
    root_of: dict[int, int] = {}
    for index in sorted(found):
        by = page.resources[index].initiator
        root = root_of.get(by.resource, index) if by else index
        root_of[index] = root
        trees.setdefault(root, []).append(index)
    return list(trees.values())


def _hosts(page: Page) -> set[str | None]:
    return {urlsplit(resource.url).hostname for resource in page.resources}


def _added(base: Page, head: Page, tree: list[int]) -> Change:
    resources = [head.resources[index] for index in tree]
    is_hop = tree[0] in _hops(head)
    host = urlsplit(resources[0].url).hostname
    size = sum(resource.wire_bytes for resource in resources) / 1000
    by = resources[0].initiator
    asked = f", asked for by {head.resources[by.resource].url}" if by else ""
    details = [f"new {'redirect' if is_hop else resources[0].kind}, {size:,.1f} kB{asked}"]
    if host not in _hosts(base):
        details.append(f"from the new host {host}")
    if len(tree) > 1:
        details.append(f"with {len(tree) - 1} more behind it")
    return Change(
        resources[0].url,
        ("redirect", "added") if is_hop else ("added",),
        tuple(details),
        tuple(resource.url for resource in resources[1:]),
        (),
        tuple(tree),
    )


def _removed(base: Page, tree: list[int]) -> Change:
    resources = [base.resources[index] for index in tree]
    size = sum(resource.wire_bytes for resource in resources) / 1000
    kind = "redirect" if tree[0] in _hops(base) else resources[0].kind
    details = [f"{kind} gone, {size:,.1f} kB"]
    if len(tree) > 1:
        details.append(f"with {len(tree) - 1} more behind it")
    others = tuple(resource.url for resource in resources[1:])
    return Change(resources[0].url, ("removed",), tuple(details), others, tuple(tree), ())


class _Merge:
    """Applies changes to the base."""

    def __init__(self, changes: Changes, made: Collection[Change]) -> None:
        self._base, self._head = changes.base, changes.head
        self._matched, self._misjudged_ms = changes.matched, changes.misjudged_ms
        self._base_of = {head: base for base, head in changes.matched.items()}
        self._gone = {index for change in made if "removed" in change.what for index in change.base}
        self._new = {index for change in made if "added" in change.what for index in change.head}
        self._fields = {change.base[0]: change.fields for change in made if change.fields}

    def version(self, name: str) -> Version:
        """The page of all remaining and added resources, each after its initiator."""
        nodes: list[_Node] = [("base", b) for b in range(len(self._base.resources)) if b not in self._gone]
        nodes += [("head", h) for h in sorted(self._new)]
        made = {node: self._resource(node) for node in nodes}
        order = list(_ordered(nodes, {node: by for node, (_, by, _) in made.items()}, self._place))
        index = {node: place for place, node in enumerate(order)}
        sizes = {node: made[node][0].body_bytes for node in nodes}
        resources = tuple(
            self._linked(*made[node], index=index, sizes=sizes, place=place)
            for place, node in enumerate(order)
        )
        known = {host.host for host in self._base.hosts}
        used = {urlsplit(resource.url).hostname for resource in resources}
        hosts = [host for host in self._head.hosts if host.host not in known and host.host in used]
        hosts = [*(host for host in self._base.hosts if host.host in used), *hosts]
        merged = replace(self._base, name=name, resources=resources, hosts=tuple(hosts))
        return Version(merged.checked(place=f"{name}: base with changes"), tuple(order))

    def _resource(self, node: _Node) -> tuple[Resource, _Node | None, _Node | None]:
        """A resource with its initiator; then the nodes of its initiator and of the resource it waits for."""
        side, index = node
        if side == "head":
            resource = self._head.resources[index]
            more_ms = self._misjudged_ms.get(urlsplit(resource.url).hostname or "", 0.0)
            resource = replace(resource, server_ms=max(0.0, resource.server_ms - more_ms))
            return self._with(resource, *self._from_head(resource.initiator))
        resource = self._base.resources[index]
        fields = dict(self._fields.get(index, {}))
        delay_ms, is_moved = fields.pop("delay_ms", None), fields.pop("initiator", False)
        if fields:
            resource = replace(resource, **fields)  # type: ignore[arg-type]
        now = self._head.resources[self._matched[index]].initiator if index in self._matched else None
        by = resource.initiator
        lost = by is not None and by.resource in self._gone
        if now is not None and (is_moved or lost or now.resource in self._new):
            made = self._with(resource, *self._from_head(now))
        elif by is not None and lost and now is None and index in self._matched:
            made = replace(resource, initiator=None), None, None  # The document, without its redirect.
        else:
            made = self._with(resource, *self._from_base(by))
        if delay_ms is not None and (by := made[0].initiator) is not None:
            return replace(made[0], initiator=replace(by, delay_ms=delay_ms)), *made[1:]  # type: ignore[arg-type]
        return made

    @staticmethod
    def _with(
        resource: Resource, by: Initiator | None, node: _Node | None, after: _Node | None
    ) -> tuple[Resource, _Node | None, _Node | None]:
        return resource if by is resource.initiator else replace(resource, initiator=by), node, after

    def _from_head(self, by: Initiator | None) -> tuple[Initiator | None, _Node | None, _Node | None]:
        if by is None:
            return None, None, None
        return by, self._of_head(by.resource), None if by.after is None else self._of_head(by.after)

    def _from_base(self, by: Initiator | None) -> tuple[Initiator | None, _Node | None, _Node | None]:
        if by is None:
            return None, None, None
        after = None if by.after is None or by.after in self._gone else ("base", by.after)
        at: int | None = by.resource
        while at is not None and at in self._gone:
            above = self._base.resources[at].initiator
            at = above.resource if above else None
        return by, None if at is None else ("base", at), after  # type: ignore[return-value]

    def _of_head(self, index: int) -> _Node | None:
        """The node for a request of the head: itself if added, its match, or its nearest such initiator."""
        at: int | None = index
        while at is not None:
            if at in self._new:
                return "head", at
            if at in self._base_of and self._base_of[at] not in self._gone:
                return "base", self._base_of[at]
            above = self._head.resources[at].initiator
            at = above.resource if above else None
        return None

    def _place(self, node: _Node) -> tuple[float, int]:
        """The position of a resource: that in the base, or after the request that precedes it in the head."""
        side, index = node
        if side == "base":
            return float(index), -1
        before = [self._base_of[h] for h in range(index) if h in self._base_of]
        return (float(before[-1]) if before else -1.0), index

    def _linked(
        self,
        resource: Resource,
        node: _Node | None,
        after: _Node | None,
        *,
        index: dict[_Node, int],
        sizes: dict[_Node, int],
        place: int,
    ) -> Resource:
        by = resource.initiator
        if place == 0:
            return replace(resource, initiator=None)
        if by is None or node is None or node not in index:
            return replace(resource, initiator=Initiator(0, "parser"))
        held = index.get(after) if after is not None else None
        linked = replace(
            by,
            resource=index[node],
            at_byte=min(by.at_byte, sizes[node]) if by.via == "parser" else by.at_byte,
            after=held if held is not None and held < place else None,
        )
        return resource if linked == by else replace(resource, initiator=linked)


def _ordered(
    nodes: Iterable[_Node], by: dict[_Node, _Node | None], place: Callable[[_Node], tuple[float, int]]
) -> Iterator[_Node]:
    """The nodes by position, each after its initiator."""
    waiting: dict[_Node, list[_Node]] = defaultdict(list)
    ready: list[tuple[tuple[float, int], _Node]] = []
    there = set(nodes)
    for node in there:
        above = by[node]
        if above is not None and above in there:
            waiting[above].append(node)
        else:
            ready.append((place(node), node))
    heapify(ready)
    while ready:
        _, node = heappop(ready)
        yield node
        for behind in waiting.pop(node, []):
            heappush(ready, (place(behind), behind))

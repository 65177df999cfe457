"""The pages of a plan, by name and fingerprint. They are opened on demand, and few are in memory at once.

A PAGE may be a pattern such as `har/**/*.har`. Like any PAGE it is relative to the current folder. Its files
are read in the order of their names. A file that cannot be read is left out with a warning. Where pages have
the same name, the file's name is added to those from patterns.

Where treatments load versions of a page, each version is an entry, named after the page and the version.
`analysis.changes` defines what a version of a page is.
"""

from __future__ import annotations

import glob
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

from firstflight.errors import PageInputError, UsageError
from firstflight.experiment.versions import changed, paired
from firstflight.experiment.workers.pool import each
from firstflight.model.load import recording_name
from firstflight.model.plan import Plan
from firstflight.observer import Observer
from firstflight.pages import (
    Deviation,
    LoadedPage,
    Page,
    load_page,
    under,
    was_cleared,
    was_unshared,
)
from firstflight.pages.sources import is_url
from firstflight.results.files import PROFILES
from firstflight.text import plural

AT_HAND = 128
"""How many pages are open at most."""

Check = Callable[[LoadedPage], None]


def _accept(page: LoadedPage) -> None:
    """Accepts every page."""


@dataclass(frozen=True)
class Entry:
    """Where a page was read from, and its fingerprint at that time.

    Attributes:
        spec: The PAGE that contains it.
        position: Its index among the pages of `spec`, from 0.
        name: The page's name in this run.
        fingerprint: The fingerprint of its profile.
        scheme: As in the plan.
    """

    spec: str
    position: int
    name: str
    fingerprint: str
    scheme: str

    def open(self) -> LoadedPage:
        """Reads the page again.

        Raises:
            PageInputError: It can no longer be read, or its fingerprint differs.
        """
        page = _named(under(self.scheme, load_page(self.spec)[self.position]), self.name)
        if fingerprint(page.page) != self.fingerprint:
            raise PageInputError(
                f"{self.spec}: the page {self.name} is not the one this run began with",
                "leave pages as they are while a run goes on; on a cluster, share their folder",
            )
        return page


class Catalogue:
    """Pages by name, opened on demand. Safe to use from several threads.

    Args:
        entries: The pages, with distinct names. A page with versions has an entry for each.
        held: Pages that are open already and stay open.
        first: Pages that are open already. They are used by the first iteration, then dropped.
        names: The names of the plan's pages, where they have versions: the entries of versions have other
            names.
    """

    def __init__(
        self,
        entries: Sequence[Entry],
        held: Sequence[LoadedPage] = (),
        first: Sequence[LoadedPage] = (),
        names: Sequence[str] = (),
    ) -> None:
        self._names = names
        self._entries = {entry.name: entry for entry in entries}
        self._held = {page.page.name: page for page in held}
        self._first = {page.page.name: page for page in first}
        self._open = lru_cache(AT_HAND)(self._opened)
        _check_distinct([entry.name for entry in entries])

    @classmethod
    def of(cls, pages: Sequence[LoadedPage]) -> Catalogue:
        """A catalogue of pages that are already open."""
        entries = [Entry("", 0, page.page.name, fingerprint(page.page), "") for page in pages]
        return cls(entries, pages)

    @property
    def names(self) -> list[str]:
        """Names of the plan's pages, in its order. Versions have other names (`PlannedLoad.recording`)."""
        return list(self._names or self._entries)

    @property
    def fingerprints(self) -> dict[str, str]:
        """Fingerprints by name."""
        return {entry.name: entry.fingerprint for entry in self._entries.values()}

    def entry(self, name: str) -> Entry | LoadedPage:
        """Where another process can read the page of that name; the page itself if it stays open here."""
        return self._held.get(name) or self._entries[name]

    def profile(self, name: str, folder: Path) -> Entry | LoadedPage:
        """As `entry`, but without bodies: the page's profile in the results folder of a resumed run."""
        if name in self._held:
            return LoadedPage(self._held[name].page)
        file = (folder / PROFILES / f"{name}.json").absolute()
        return replace(self._entries[name], spec=str(file), position=0, scheme="recorded")

    def open(self, name: str) -> LoadedPage:
        """Opens the page of that name; see `Entry.open`."""
        return self._open(name)

    @property
    def held(self) -> int:
        """How many pages are open."""
        return len(self._held) + self._open.cache_info().currsize

    def __iter__(self) -> Iterator[LoadedPage]:
        """Every page. If many are not open, other processes open them."""
        at_hand, self._first = {**self._held, **self._first}, {}
        left = each(Entry.open, [entry for name, entry in self._entries.items() if name not in at_hand])
        return (at_hand.get(name) or next(left) for name in self._entries)

    def _opened(self, name: str) -> LoadedPage:
        return self._held[name] if name in self._held else self._entries[name].open()


def read_catalogue(plan: Plan, observer: Observer, check: Check = _accept) -> Catalogue:
    """Opens every page of a plan once, and every version of a page that has versions.

    If treatments differ in the scheme, pages are opened as recorded.

    Args:
        plan: What is measured. Its PAGEs may be patterns.
        observer: Is told the notes of readers. It is warned of files of a pattern that are left out, and of
            versions that are equal or that some treatments lack. It is warned once of each of these groups:
            pages loaded without their TLS, pages loaded without their version of HTTP, and pages without a
            recorded one.
        check: Raises `PageInputError` for a page that the plan cannot load.

    Raises:
        UsageError: Nothing that a pattern matches can be read, or two pages have the same name.
        PageInputError: A page that is not from a pattern cannot be read or loaded, or two versions are not
            recordings of one page.
    """
    several = _versions(plan, observer, check) if plan.versions else {}
    opened = [one for of_page in several.values() for one in of_page]
    opened = opened or _read(plan.pages, plan.schemes, observer, check)
    is_as_recorded = any(arm.http == "recorded" for arm in plan.arms().values())
    for deviation, named in (
        (Deviation.CLEARED, [one for one in opened if one.is_cleared]),
        (Deviation.UNSHARED, [one for one in opened if one.is_unshared and plan.http_of_loader == "1.1"]),
        (Deviation.UNTOLD, [one for one in opened if one.is_untold and is_as_recorded]),
    ):
        if named:
            observer.warn(deviation.warning([one.entry.name for one in named]))
    held = [one.page for one in opened if one.page and one.is_held]
    first = [one.page for one in opened if one.page and not one.is_held]
    return Catalogue([one.entry for one in opened], held, first, [*several])


def _read(specs: Sequence[str], schemes: Sequence[str], observer: Observer, check: Check) -> list[_Opened]:
    """The pages of all PAGEs. Pages from patterns are renamed where their names collide."""
    opened: list[_Opened] = []
    for spec in specs:
        files = matches(spec)
        if files:
            observer.note(f"{spec}: {plural(len(files), 'file')}")
        pages = _matched(files, schemes, observer, check) if files else iter(_pages(schemes, check, spec))
        before = len(opened)
        for page in pages:
            _say_notes(page, observer)
            opened.append(page if len(opened) < AT_HAND else replace(page, page=None))
        if len(opened) == before:
            raise UsageError(f"pages: nothing that {spec} matches can be read", "see docs/archives.md")
    return _told_apart(opened)


def _versions(plan: Plan, observer: Observer, check: Check) -> dict[str, list[_Opened]]:
    """The versions of each page as they are loaded, by its name."""
    read = {
        version: {one.entry.name: one for one in _read([page], plan.schemes, observer, check)}
        for version, page in plan.versions.items()
    }
    found = {}
    for name, several in paired(read, observer).items():
        opened = {version: _renamed(one, recording_name(name, version)) for version, one in several.items()}
        pages = {version: (one.page or one.entry.open()).page for version, one in opened.items()}
        as_loaded = changed(name, pages, observer)
        if plan.clients == ("loader",):
            opened = {version: _held(one, as_loaded[version]) for version, one in opened.items()}
        found[name] = [*opened.values()]
    return found


def _held(opened: _Opened, page: Page) -> _Opened:
    """An entry for a page that is in no file, so that it stays open."""
    entry = Entry("", 0, page.name, fingerprint(page), "")
    return replace(opened, entry=entry, page=LoadedPage(page), is_held=True)


def matches(spec: str) -> list[str]:
    """The files that a pattern matches, sorted by name; empty if `spec` is not a pattern.

    Raises:
        UsageError: It is a pattern and matches nothing.
    """
    if is_url(spec) or not glob.has_magic(spec) or Path(spec.partition("#")[0]).exists():
        return []
    files = sorted(glob.glob(spec, recursive=True))  # noqa: PTH207 (absolute patterns too)
    if not files:
        raise UsageError(
            f"pages: nothing matches {spec}", f"patterns are relative to the current folder, {Path.cwd()}"
        )
    return files


@dataclass(frozen=True)
class _Opened:
    """One page of a PAGE; the page itself may have been closed again.

    Attributes:
        entry: Where it was read from.
        page: The page; `None` where it was closed.
        is_matched: Whether its PAGE is a pattern.
        is_cleared: Whether its TLS was removed.
        is_unshared: Whether it was recorded over HTTP/2 or HTTP/3, and keeps its TLS.
        is_untold: Whether it keeps its TLS, and its recording does not tell the version of HTTP.
        is_held: Whether it has to stay open.
    """

    entry: Entry
    page: LoadedPage | None
    is_matched: bool = False
    is_cleared: bool = False
    is_unshared: bool = False
    is_untold: bool = False
    is_held: bool = False


def _matched(
    files: Sequence[str], schemes: Sequence[str], observer: Observer, check: Check
) -> Iterator[_Opened]:
    for pages, problem in each(partial(_attempt, schemes, check), files):
        if problem:
            observer.warn(f"left out: {problem}")
        yield from (replace(page, is_matched=True) for page in pages)


def _attempt(schemes: Sequence[str], check: Check, file: str) -> tuple[list[_Opened], str]:
    """The pages of a file, or the reason why it cannot be read."""
    try:
        return _pages(schemes, check, file), ""
    except PageInputError as error:
        return [], error.message


def _pages(schemes: Sequence[str], check: Check, spec: str) -> list[_Opened]:
    opened_as = schemes[0] if len(schemes) == 1 else "recorded"
    found = []
    for position, recorded in enumerate(load_page(spec)):
        page = under(opened_as, recorded)
        for scheme in schemes:
            check(page if scheme == opened_as else under(scheme, recorded))
        entry = Entry(spec, position, page.page.name, fingerprint(page.page), opened_as)
        cleared = any(was_cleared(scheme, recorded) for scheme in schemes)
        unshared = any(was_unshared(scheme, recorded) for scheme in schemes)
        untold = not page.page.tells_http
        one = _Opened(entry, page, is_cleared=cleared, is_unshared=unshared, is_untold=untold)
        found.append(one)
    return found


def _say_notes(opened: _Opened, observer: Observer) -> None:
    for text in opened.page.notes if opened.page else ():
        observer.note(f"{opened.entry.name}: {text}")


def _told_apart(opened: Sequence[_Opened]) -> list[_Opened]:
    """Adds the file's name to the names of pages from patterns that share their name."""
    names = Counter(one.entry.name for one in opened)
    return [
        _renamed(one, f"{one.entry.name}-{_file_name(one.entry.spec)}"[:100])
        if one.is_matched and names[one.entry.name] > 1
        else one
        for one in opened
    ]


def _renamed(opened: _Opened, name: str) -> _Opened:
    entry = opened.entry
    page = _named(opened.page or under(entry.scheme, load_page(entry.spec)[entry.position]), name)
    renamed = replace(entry, name=name, fingerprint=fingerprint(page.page))
    return replace(opened, entry=renamed, page=page if opened.page else None)


def _named(page: LoadedPage, name: str) -> LoadedPage:
    return page if page.page.name == name else replace(page, page=replace(page.page, name=name))


def _file_name(spec: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", Path(spec).name.split(".har")[0])[:60]


def _check_distinct(names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise UsageError(
                f"pages: two pages are called {name}", "rename one: the name stands in its profile"
            )


def fingerprint(page: Page) -> str:
    """The fingerprint of a page's profile. A resumed run compares it with the earlier one."""
    return hashlib.sha256(page.to_json().encode()).hexdigest()[:16]

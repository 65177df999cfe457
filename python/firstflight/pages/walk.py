"""Finds the initiators of exchanges of a recording without times, and so the order of the page's requests.

It starts with the document. When an exchange is reached, the exchanges that it refers to can be reached next.
The first of these rules that reaches anything is applied:

1. A recorded redirect leads to its target.
2. Markup or a style sheet names the URL.
3. A script names the full URL (`inferred`).
4. A script names its file, or its host (`inferred`).
5. The request's `Referer` is a style sheet or document that was reached (`inferred`; of a document: at its
   end).
6. What remains and is not a document: at the end of the page's document (`inferred`).

A document that nothing reached refers to is another page of the archive. It is left out, with what only it
refers to. A mirror without a log has neither redirects nor requests, so only rules 2 and 3 apply.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from firstflight.model.page import Initiator, Kind
from firstflight.pages.discovery import Discovery, kind_by_type, missing, through_redirects, with_wire_offset
from firstflight.pages.exchange import Exchange
from firstflight.pages.mentions import Files, Mentions, RecordedFiles, needles, scan_exchange


@dataclass(frozen=True, slots=True)
class Walked:
    """The exchanges of one page in the order of their discovery, and the number of other exchanges."""

    exchanges: list[Exchange]
    discovery: Discovery
    left_out: int = 0


def walk_archive(exchanges: list[Exchange], start: int) -> Walked:
    """Follows the page whose first request is `exchanges[start]`."""
    walk = _ArchiveWalk(exchanges)
    walk.reach(walk.take(start), None, "document")
    walk.run()
    found = walk.discovery({exchange.url for exchange in exchanges})
    return Walked(walk.exchanges, found, len(exchanges) - len(walk.exchanges))


class Walk(ABC):
    """Follows a page by the names in its texts: rules 2 and 3.

    Args:
        files: Finds the references that the recording answers.

    Attributes:
        exchanges: The reached exchanges, in the order of their discovery.
        places: Index in `exchanges` of the first exchange of each URL.
    """

    def __init__(self, files: Files) -> None:
        self.exchanges: list[Exchange] = []
        self.places: dict[str, int] = {}
        self._files = files
        self._initiators: list[Initiator | None] = []
        self._kinds: list[Kind] = []
        self._mentions = Mentions()
        self._scanned = 0
        self._searched: dict[bool, int] = {True: 0, False: 0}

    @abstractmethod
    def answers(self, url: str, kind: Kind | None) -> list[Exchange]:
        """Takes the exchanges of `url` that were not reached yet.

        Args:
            url: The requested URL.
            kind: The kind that the reference expects; `None`: a script makes the request.
        """

    @abstractmethod
    def unreached(self) -> list[str]:
        """The URLs that a script may request."""

    def reach(self, exchange: Exchange, initiator: Initiator | None, kind: Kind | None) -> None:
        """Adds an exchange to the page; `kind` is the kind that the reference expects."""
        self.places.setdefault(exchange.url, len(self.exchanges))
        self.exchanges.append(exchange)
        self._initiators.append(initiator)
        self._kinds.append(exchange.kind or kind or kind_by_type(exchange))

    def run(self) -> None:
        """Reaches all exchanges that it can, by the strongest rule first."""
        while any(rule() for rule in self._rules()):
            pass

    def discovery(self, asked: set[str]) -> Discovery:
        """The initiator of each; references that are not in `asked` and have no file are missing."""
        kinds = through_redirects(self._initiators, ["document", *self._kinds[1:]])
        return Discovery(self._initiators, kinds, missing(self._mentions, asked, self._files))

    def _rules(self) -> tuple[Callable[[], bool], ...]:
        return (self._scan, self._search)

    def _scan(self) -> bool:
        """Applies rule 2 to the next reached exchange."""
        if self._scanned == len(self.exchanges):
            return False
        place = self._scanned
        self._scanned += 1
        for mention in scan_exchange(place, self.exchanges[place], self._files, self._mentions.scripts):
            self._mentions.add(mention)
            initiator = self._on_wire(Initiator(place, mention.via, mention.at_byte))
            for exchange in self.answers(mention.url, mention.kind):
                self.reach(exchange, initiator, mention.kind)
        return True

    def _search(self, *, sure: bool = True) -> bool:
        """Applies rule 3, or 4 if not `sure`, to the next script that was not searched."""
        at = self._searched[sure]
        if at == len(self._mentions.scripts):
            return False
        self._searched[sure] += 1
        script = self._mentions.scripts[at]
        for url in self.unreached():
            if any(needle.sure is sure and needle.text in script.text for needle in needles(url)):
                initiator = Initiator(script.parent, script.via, script.at_byte, inferred=True)
                for exchange in self.answers(url, None):
                    self.reach(exchange, self._on_wire(initiator), None)
        return True

    def _on_wire(self, initiator: Initiator) -> Initiator:
        parent = self.exchanges[initiator.resource]
        if initiator.via != "parser":
            return initiator
        return with_wire_offset(initiator, parent.text_bytes, parent.body_bytes)


class _ArchiveWalk(Walk):
    """Follows a page of an archive, by all rules."""

    def __init__(self, exchanges: list[Exchange]) -> None:
        super().__init__(RecordedFiles(exchanges))
        self._recorded = exchanges
        self._left: dict[str, list[int]] = {}
        for index, exchange in enumerate(exchanges):
            self._left.setdefault(exchange.url, []).append(index)

    def answers(self, url: str, kind: Kind | None) -> list[Exchange]:
        """All remaining exchanges of `url`."""
        return [self.take(index) for index in list(self._left.get(url, ()))]

    def unreached(self) -> list[str]:
        """The URLs of the remaining exchanges."""
        return [url for url, indices in self._left.items() if indices]

    def take(self, index: int) -> Exchange:
        """Takes one exchange of the archive from the remaining ones."""
        exchange = self._recorded[index]
        self._left[exchange.url].remove(index)
        return exchange

    def _rules(self) -> tuple[Callable[[], bool], ...]:
        return (*super()._rules(), self._search_names, self._refer, self._rest)

    def _scan(self) -> bool:
        """Applies rules 1 and 2 to the next reached exchange."""
        place = self._scanned
        target = self.exchanges[place].redirect if place < len(self.exchanges) else ""
        for index in self._left.get(target, [])[:1] if target else ():
            self.reach(self.take(index), Initiator(place, "redirect"), None)
        return super()._scan()

    def _search_names(self) -> bool:
        return self._search(sure=False)

    def _refer(self) -> bool:
        """Applies rule 5 to the first exchange that it reaches."""
        for index in self._rest_of_archive():
            place = self.places.get(self._recorded[index].referer)
            if place is not None:
                self.reach(self.take(index), self._at_end(place), None)
                return True
        return False

    def _rest(self) -> bool:
        """Applies rule 6 to the first exchange that it reaches."""
        left = self._rest_of_archive()
        pages = {self._recorded[index].url for index in left if self._is_page(index)}
        for index in left:
            if not self._is_page(index) and self._recorded[index].referer not in pages:
                self.reach(self.take(index), self._at_end(self._document()), None)
                return True
        return False

    def _rest_of_archive(self) -> list[int]:
        return sorted(index for indices in self._left.values() for index in indices)

    def _is_page(self, index: int) -> bool:
        exchange = self._recorded[index]
        return (exchange.is_html and exchange.kind != "xhr") or bool(exchange.redirect)

    def _document(self) -> int:
        """The index of the page's document, after its redirects."""
        return next((place for place, exchange in enumerate(self.exchanges) if not exchange.redirect), 0)

    def _at_end(self, place: int) -> Initiator:
        exchange = self.exchanges[place]
        if exchange.is_style:
            return Initiator(place, "style", inferred=True)
        if exchange.is_html:
            return Initiator(place, "parser", exchange.body_bytes, inferred=True)
        return Initiator(place, "script", inferred=True)

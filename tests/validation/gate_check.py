"""Holds the gate against changes that are known: none, one that delays a page, one that does not.

    python tests/validation/gate_check.py FOLDER [--recordings 50] [--pairs 1000] [--part 1/4] [--only KIND]

FOLDER holds recordings (HAR, WACZ, WARC, profiles), such as a corpus of HARs. Of each, profiles are made that
differ in one thing (`inject`), and the gate judges them on `cable` and `4g`. `A/A` are two recordings that
differ only in what visits of an unchanged page differ in (`revisited`): the gate must not call either slower.
What is printed: how many of each kind the gate called slower, and in how many it named the request.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from firstflight.analysis.changes import NOISE_MS, final_document, find_changes
from firstflight.analysis.critical_path.walk import critical_path
from firstflight.analysis.statistics import SLOWER
from firstflight.errors import FirstflightError
from firstflight.gate.judge import TOLERANCE_MS, Judge, Verdict
from firstflight.gate.moments import render_page
from firstflight.gate.trials import Network, Trials, networks
from firstflight.model.page import Initiator, Page, Resource
from firstflight.observer import Observer
from firstflight.pages import load_page
from firstflight.results import LoadRecord

HARMFUL = ("round trip", "stylesheet", "third party", "redirect", "server")
"""What must be found: one more request behind the last of the critical path; 20 kB more of a stylesheet; such
a request to a new host; a redirect before the document; +100 ms of the document's server."""

HARMLESS = "image"
"""20 kB more of an image that neither the load event nor any request on its path waits for."""

NETWORKS = ("cable", "4g")
KEYS: dict[str, object] = {"http": "2", "mode": "tcp"}
LARGER_BYTES, SLOWER_MS, SLACK_MS = 20_000, 100.0, 300.0


def appended(page: Page, behind: int, url: str) -> Page:
    """The page with a script of 600 bytes, asked for when a request has been answered."""
    new = Resource(url, "script", "text/javascript", 300, 300, 600, initiator=Initiator(behind, "script"))
    return replace(page, resources=(*page.resources, new)).checked()


def redirected(page: Page, url: str) -> Page:
    """The page whose document is reached through one more redirect."""
    at = final_document(page)

    def moved(index: int | None) -> int | None:
        return index if index is None or index < at else index + 1

    resources = []
    for resource in page.resources:
        by = resource.initiator
        linked = by and replace(by, resource=moved(by.resource) or 0, after=moved(by.after))
        resources.append(replace(resource, initiator=linked))
    document = resources[at]
    hop = Resource(url, "document", "text/html", 300, 300, 0, status=302, initiator=document.initiator)
    resources[at : at + 1] = [hop, replace(document, initiator=Initiator(at, "redirect"))]
    return replace(page, resources=tuple(resources)).checked()


def altered(page: Page, index: int, *, body_bytes: int = 0, server_ms: float = 0.0) -> Page:
    """The page with one longer response, or one slower server."""
    old = page.resources[index]
    new = replace(old, body_bytes=old.body_bytes + body_bytes, server_ms=old.server_ms + server_ms)
    return replace(page, resources=(*page.resources[:index], new, *page.resources[index + 1 :])).checked()


def inject(kind: str, page: Page, load: LoadRecord, seed: int = 1) -> tuple[Page, str] | None:
    """The page with one change, and the URL that the gate has to name; None where it has no place for it.

    Args:
        kind: Of `HARMFUL`, or `HARMLESS`.
        page: The page.
        load: A load of it.
        seed: Of which stylesheet or image.
    """
    path, draw = critical_path(load, page), random.Random(f"{kind} {page.name} {seed}")
    last = path.requests[-1]
    if kind == "round trip":
        url = f"{page.resources[last].origin}/one-more.js"
        return appended(page, last, url), url
    if kind == "third party":
        return appended(page, last, "https://third.example/tag.js"), "https://third.example/tag.js"
    if kind == "redirect":
        return redirected(page, "https://short.example/"), "https://short.example/"
    document = final_document(page)
    if kind == "server":
        return altered(page, document, server_ms=SLOWER_MS), page.resources[document].url
    if kind == "stylesheet":
        urls = {one.url for one in render_page(page).resources if one.kind == "style"}
        found = [i for i, one in enumerate(page.resources) if one.url in urls and one.blocks_load]
    else:
        found = off_path(page, load)
    if not found:
        return None
    index = draw.choice(found)
    return altered(page, index, body_bytes=LARGER_BYTES), page.resources[index].url


def off_path(page: Page, load: LoadRecord) -> list[int]:
    """Images that arrive well before the load event, and that nothing on the critical path waited behind."""
    path = critical_path(load, page)
    used = {*path.requests, *(index for wait in path.waits for index in wait.behind)}
    ends = {row["index"]: row["end_ms"] for row in load["requests"]}
    return [
        index
        for index, resource in enumerate(page.resources)
        if resource.kind == "image"
        and index not in used
        and (end := ends.get(index)) is not None
        and end < path.plt_ms - SLACK_MS
    ]


def revisited(page: Page, seed: str, spread: float) -> Page:
    """Another visit of the page: other server times, other queries, documents a little longer or shorter.

    Args:
        page: The page.
        seed: Of the visit.
        spread: Standard deviation of the logarithm of a server's time, in addition to up to 20 ms.
    """
    draw, visit = random.Random(seed), seed.rpartition(" ")[2]
    resources: list[Resource] = []
    for resource in page.resources:
        server_ms = resource.server_ms * math.exp(draw.gauss(0, spread)) + draw.uniform(0, 20)
        more = draw.uniform(-0.004, 0.004) if resource.kind in ("document", "xhr") else 0.0
        by = resource.initiator
        if by is not None and by.via == "parser":
            by = replace(by, at_byte=min(by.at_byte, resources[by.resource].body_bytes))
        new = replace(
            resource,
            url=f"{resource.url}&visit={visit}" if resources and "?" in resource.url else resource.url,
            server_ms=server_ms,
            body_bytes=round(resource.body_bytes * (1 + more)),
            header_bytes=resource.header_bytes + draw.randint(0, 40),
            initiator=by,
        )
        resources.append(new)
    return replace(page, resources=tuple(resources)).checked()


def judged(bases: list[Page], heads: list[Page], network: Network) -> Verdict:
    """The verdict on one network."""
    trials = Trials(find_changes(bases, heads, NOISE_MS))
    return Judge(trials, TOLERANCE_MS, Observer()).simulated([network])[0]


def recordings(folder: Path, most: int) -> list[tuple[str, Page]]:
    """The first pages of files below a folder that can be read and have ten requests or more."""
    found = []
    for file in sorted(file for file in folder.rglob("*") if file.suffix in (".har", ".json", ".wacz")):
        try:
            page = load_page(str(file))[0].page
        except FirstflightError:
            continue
        if len(page.resources) >= 10:
            found.append((file.name, page))
    step = max(1, len(found) // most)
    return found[::step][:most]


def check_injections(pages: list[tuple[str, Page]], only: str) -> Iterator[tuple[str, str, bool]]:
    """For each change on each network: its kind, the network, whether the gate said what it must say."""
    several = networks(NETWORKS, KEYS)
    for name, page in pages:
        unchanged = Trials(find_changes([page], [page]))
        for network in several:
            load = unchanged.simulated(network).pairs[0][0]
            for kind in (*HARMFUL, HARMLESS):
                made = inject(kind, page, load) if only in ("", kind) else None
                if made is None:
                    continue
                verdict = judged([page], [made[0]], network)
                named = verdict.costs[0].change.url == made[1] if verdict.costs else False
                is_right = (verdict.verdict == SLOWER and named) == (kind != HARMLESS)
                if not is_right:
                    said = [f"{m.name} {m.difference_ms:+.1f}" for m in verdict.metrics]
                    show(f"  wrong: {kind}, {network.name}, {name}: {verdict.verdict}, {', '.join(said)}")
                yield kind, network.name, is_right


def check_same(
    pages: list[tuple[str, Page]], pairs: int, spread: float, visits: int
) -> Iterator[tuple[str, str, bool]]:
    """For each pair of visits of an unchanged page: whether the gate was silent."""
    several = networks(NETWORKS, KEYS)
    for number in range(pairs):
        name, page = pages[number % len(pages)]
        network = several[number // len(pages) % len(several)]
        sides = [
            [revisited(page, f"{number} {visit}{side}", spread) for visit in range(visits)] for side in "ab"
        ]
        verdict = judged(sides[0], sides[1], network)
        if verdict.verdict == SLOWER:
            said = [f"{m.name} {m.difference_ms:+.1f}" for m in verdict.metrics]
            said += [f"{cost.change.url[:60]}: {cost.change.words[:80]}" for cost in verdict.costs[:1]]
            show(f"  alarm: {network.name}, {name}, pair {number}: {', '.join(said)}")
        yield f"A/A, spread {spread:g}, {visits} a side", network.name, verdict.verdict != SLOWER


def show(line: str) -> None:
    """A line of the result, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Prints what the gate said of each kind."""
    parser = argparse.ArgumentParser(description="Holds the gate against changes that are known.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--recordings", type=int, default=50)
    parser.add_argument("--part", default="1/1", help="which part of the recordings, such as 2/4")
    parser.add_argument("--only", default="", help="one kind of change")
    parser.add_argument(
        "--pairs", type=int, default=0, help="pairs of visits of unchanged pages, in place of changes"
    )
    parser.add_argument("--spread", type=float, default=0.0, help="of the servers' times over the visits")
    parser.add_argument("--visits", type=int, default=1, help="recordings of each side")
    given = parser.parse_args()
    part, parts = map(int, given.part.split("/"))
    pages = recordings(given.folder, given.recordings)[part - 1 :: parts]
    found = (
        check_same(pages, given.pairs, given.spread, given.visits)
        if given.pairs
        else check_injections(pages, given.only)
    )
    counts: Counter[tuple[str, str, bool]] = Counter(found)
    show(f"{len(pages)} recordings")
    for kind, network in dict.fromkeys((kind, network) for kind, network, _ in counts):
        right, wrong = (counts[kind, network, is_right] for is_right in (True, False))
        show(f"{kind}, {network}: {right} of {right + wrong} right")


if __name__ == "__main__":
    main()

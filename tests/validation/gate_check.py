"""Checks the gate with known changes: harmful ones, a harmless one, and none.

    python tests/validation/gate_check.py FOLDER --kept FILE.jsonl [--recordings 50] [--networks cable,4g]
    python tests/validation/gate_check.py FOLDER --kept FILE.jsonl --loads 1000 --networks cable,wifi-lossy
    python tests/validation/gate_check.py FOLDER --kept FILE.jsonl --visits 200 [--spread 0.3] [--sides 1]

FOLDER holds recordings (HAR, WACZ, WARC, profiles), such as a corpus of HARs. For each, `inject` makes
profiles that differ from it in one thing. The gate judges them on every network.

`--loads` measures false alarms by chance. Both sides are the same recording. The losses, delays and timers of
the head's loads have other seeds than the base's. The check tells the gate that every request has changed, so
that it makes all loads and applies the smallest tolerance.

`--visits` measures false alarms from differences between visits of an unchanged page (`revisited`). Without a
spread no difference counts, so no alarm is possible. With a spread, the servers' times differ too.

The program appends each answer to FILE as soon as it has it, and skips those that FILE has already. With
`--seconds`, a long check can thus be made in several runs. It prints, for each kind and network, how many
answers were right.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from firstflight.analysis.changes import NOISE_MS, Change, Changes, final_document, find_changes
from firstflight.analysis.critical_path.walk import critical_path
from firstflight.analysis.statistics import SLOWER
from firstflight.errors import FirstflightError
from firstflight.gate.judge import SAME, TOLERANCE_MS, Judge, Metric, Verdict, overall
from firstflight.gate.moments import render_page
from firstflight.gate.trials import Cost, Network, Trials, networks
from firstflight.model.page import Initiator, Page, Resource
from firstflight.observer import Observer
from firstflight.pages import load_page
from firstflight.results import LoadRecord

HARMFUL = ("round trip", "stylesheet", "third party", "redirect", "server")
"""The kinds of change that the gate must find:

- round trip: one more request, after the last one of the critical path;
- stylesheet: 20 kB more of a stylesheet;
- third party: one more request as above, to a new host;
- redirect: a redirect before the document;
- server: the document's server takes 100 ms longer.
"""

HARMLESS = "image"
"""20 kB more of an image. Neither the load event nor a request on the critical path waits for that image."""

KEYS: dict[str, object] = {"http": "recorded", "mode": "tcp"}
HEAD_SEED, SEEDS_APART = 500_000, 1_000
"""Seeds of base loads begin at 1, those of the first head at `HEAD_SEED`.

Heads are `SEEDS_APART` seeds apart.
"""

LARGER_BYTES, SLOWER_MS, SLACK_MS = 20_000, 100.0, 300.0


def appended(page: Page, behind: int, url: str) -> Page:
    """The page with one more script of 600 bytes, requested when request `behind` has been answered."""
    new = Resource(url, "script", "text/javascript", 300, 300, 600, initiator=Initiator(behind, "script"))
    return replace(page, resources=(*page.resources, new)).checked()


def redirected(page: Page, url: str) -> Page:
    """The page with one more redirect before its document."""
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
    """The page with one larger response, or one slower server."""
    old = page.resources[index]
    new = replace(old, body_bytes=old.body_bytes + body_bytes, server_ms=old.server_ms + server_ms)
    return replace(page, resources=(*page.resources[:index], new, *page.resources[index + 1 :])).checked()


def inject(kind: str, page: Page, load: LoadRecord, seed: int = 1) -> tuple[Page, str] | None:
    """The page with one change, and the URL that the gate must name.

    `None` if the change does not fit the page.

    Args:
        kind: One of `HARMFUL`, or `HARMLESS`.
        page: The page.
        load: A load of it.
        seed: Selects the stylesheet or the image.
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
    """Images that arrive well before the load event, and for which no request on the critical path waited."""
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
    """Another visit of the page: other server times and queries, documents a little longer or shorter.

    Args:
        page: The page.
        seed: The seed of this visit's random changes.
        spread: Standard deviation of the logarithm of a server's time. Each time also grows by up to 20 ms.
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
    """The gate's verdict on one network."""
    trials = Trials(find_changes(bases, heads, NOISE_MS))
    return Judge(trials, TOLERANCE_MS, Observer()).on([network], ["simulate"])[0]


def judged_by_chance(page: Page, network: Network, head_seed: int) -> tuple[Metric, ...]:
    """The gate's metrics for loads of one page with two sets of seeds, as if all its requests had changed."""
    every = tuple(range(len(page.resources)))
    none = Change(page.url, ("slower",), ("nothing",), (), every, every)
    trials = Trials(Changes(page, page, {index: index for index in every}, (none,)), head_seed)
    return Judge(trials, TOLERANCE_MS, Observer()).simulated(network)[1]


def recordings(folder: Path, most: int) -> list[tuple[str, Page]]:
    """At most `most` recordings below a folder, evenly spaced by name: of each readable file the first page.

    Pages with fewer than ten requests are left out.
    """
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


Key = tuple[str, str, str, int]
"""Identifies a question: kind of change, page, network, number of the pair."""

Answer = dict[str, Any]
"""The stored answer: `kind`, `page`, `network`, `is_right`, the verdict, and what the gate said."""


def answer_of(key: Key, metrics: Sequence[Metric], costs: Sequence[Cost] = (), url: str = "") -> Answer:
    """The answer to store for a verdict.

    Args:
        key: The question.
        metrics: The gate's metrics.
        costs: What each change costs, according to the gate.
        url: The request that the gate must name first. If empty, the gate must not call the head slower, and
            must not call the sides of an A/A pair different.
    """
    said = [
        f"{m.name} {m.difference_ms:+.1f} ({m.low_ms:+.1f} to {m.high_ms:+.1f})"
        f"{'' if m.is_on_path else ' beside'}: {m.verdict}"
        for m in metrics
    ]
    said += [f"{cost.change.url[:80]} {cost.ms:+.1f}: {cost.change.words[:80]}" for cost in costs[:2]]
    verdict = overall(metrics)
    is_found = verdict == SLOWER and bool(costs) and costs[0].change.url == url
    return {
        "kind": key[0],
        "page": key[1],
        "network": key[2],
        "is_right": is_found if url else verdict == SAME or (key[0] == HARMLESS and verdict != SLOWER),
        "verdict": verdict,
        "said": said,
    }


Task = tuple[Key, Callable[[Key], Answer | None]]
"""A question and the function that answers it; `None` if the page has no place for the change."""


def injections(pages: list[tuple[str, Page]], several: list[Network], only: str) -> Iterator[Task]:
    """The questions for every kind of change to every page on every network."""

    def asked(page: Page, network: Network, key: Key) -> Answer | None:
        unchanged = Trials(find_changes([page], [page]))
        made = inject(key[0], page, unchanged.simulated(network).pairs[0][0])
        if made is None:
            return None
        verdict = judged([page], [made[0]], network)
        return answer_of(key, verdict.metrics, verdict.costs, "" if key[0] == HARMLESS else made[1])

    for name, page in pages:
        for network in several:
            for kind in (*HARMFUL, HARMLESS):
                if only in ("", kind):
                    yield (kind, name, network.name, 0), partial(asked, page, network)


def equal_loads(pages: list[tuple[str, Page]], several: list[Network], pairs: int) -> Iterator[Task]:
    """The questions for equal pages: pages and networks in turn, each round with another seed of the head."""

    def asked(page: Page, network: Network, key: Key) -> Answer:
        return answer_of(key, judged_by_chance(page, network, HEAD_SEED + SEEDS_APART * key[3]))

    places = [(page, network) for page in pages for network in several]
    for number in range(pairs):
        (name, page), network = places[number % len(places)]
        yield ("A/A, loads", name, network.name, number // len(places)), partial(asked, page, network)


def visits(
    pages: list[tuple[str, Page]], several: list[Network], pairs: int, spread: float, sides: int
) -> Iterator[Task]:
    """The questions for two sets of visits of an unchanged page: the gate must raise no alarm."""
    kind = f"A/A, visits, spread {spread:g}, {sides} a side"

    def asked(page: Page, network: Network, key: Key) -> Answer:
        bases, heads = (
            [revisited(page, f"{key[3]} {visit}{side}", spread) for visit in range(sides)] for side in "ab"
        )
        verdict = judged(bases, heads, network)
        return answer_of(key, verdict.metrics, verdict.costs)

    for number in range(pairs):
        name, page = pages[number % len(pages)]
        network = several[number // len(pages) % len(several)]
        yield (kind, name, network.name, number), partial(asked, page, network)


def show(line: str) -> None:
    """Prints a line of the result at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Answers the questions without an answer, and prints the results for each kind."""
    parser = argparse.ArgumentParser(description="Holds the gate against changes that are known.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kept", type=Path, required=True, help="where answers are kept, a JSON line each")
    parser.add_argument("--recordings", type=int, default=50)
    parser.add_argument("--networks", default="cable,4g")
    parser.add_argument("--only", default="", help="one kind of change")
    parser.add_argument("--loads", type=int, default=0, help="pairs of equal loads, in place of changes")
    parser.add_argument("--visits", type=int, default=0, help="pairs of visits, in place of changes")
    parser.add_argument("--spread", type=float, default=0.0, help="of the servers' times over the visits")
    parser.add_argument("--sides", type=int, default=1, help="recordings of each side, of visits")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no answer after so long")
    given = parser.parse_args()
    began = time.monotonic()
    several = networks(given.networks.split(","), KEYS)
    pages = recordings(given.folder, given.recordings)
    if given.loads:
        tasks: Iterator[Task] = equal_loads(pages, several, given.loads)
    elif given.visits:
        tasks = visits(pages, several, given.visits, given.spread, given.sides)
    else:
        tasks = injections(pages, several, given.only)
    lines = given.kept.read_text().splitlines() if given.kept.exists() else []
    known = {tuple(row["key"]): row["answer"] for row in map(json.loads, lines)}
    left, answers = 0, list[Answer]()
    with given.kept.open("a") as kept:
        for key, answer in tasks:
            if key not in known:
                if time.monotonic() - began > given.seconds:
                    left += 1
                    continue
                known[key] = answer(key)
                kept.write(json.dumps({"key": key, "answer": known[key]}) + "\n")
                kept.flush()
            answers += [known[key]] if known[key] else []
    for row in answers:
        if not row["is_right"]:
            place = f"{row['kind']}, {row['network']}, {row['page']}"
            show(f"  wrong: {place}: {row['verdict']}; {'; '.join(row['said'])}")
    show(
        f"{len(pages)} recordings, {len(answers)} answers, {sum(row is None for row in known.values())} none"
    )
    counts = Counter((row["kind"], row["network"], row["is_right"]) for row in answers)
    for kind, network in dict.fromkeys((kind, network) for kind, network, _ in counts):
        right, wrong = (counts[kind, network, is_right] for is_right in (True, False))
        show(f"{kind}, {network}: {right} of {right + wrong} right")
    if left:
        show(f"{left} left: run again")


if __name__ == "__main__":
    main()

"""Simulated against emulated page load times, cell by cell: where the simulator is off, and by how much.

Emulated loads take their own time and are kept in a file, so that only the simulator runs again:

    python tests/validation/parity_probe.py --kept build/emulated.json --set access
"""

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path as FilePath
from typing import Any

from accuracy_grid import measured_pages
from accuracy_pages import file

from firstflight import _core
from firstflight.engines.lab import Lab
from firstflight.pages import LoadedPage, load_page, under

PAGES = ("amazon", "nytimes", "wikipedia", "wsj")
MODES = ("tcp", "tfo")
RTTS = (20.0, 100.0, 200.0)
QUEUE = {"packets": 1000}
LIMIT_MS = 240_000

OFFERS: dict[str, dict[str, Any]] = {
    "1.3 post-quantum": {"post_quantum": True},
    "1.3 classic": {"post_quantum": False},
    "1.2": {"version": "1.2"},
    "1.3 classic, HTTP/2": {"post_quantum": False, "http": "2"},
}
"""What the client speaks TLS with, as jobs say it."""

Cell = dict[str, Any]


def access(rtts: tuple[float, ...] = RTTS) -> Iterator[Cell]:
    """The paper's access link."""
    yield from cells(rtts, [("access", 4e6, 0.256e6)])


def star() -> Iterator[Cell]:
    """The course's star."""
    yield from cells(RTTS, [("star", 4e6, 4e6)])


def close() -> Iterator[Cell]:
    """Servers that close after each response."""
    yield from cells((20.0, 100.0), [("access", 4e6, 0.256e6)], keep_alive=False)


def rates() -> Iterator[Cell]:
    """Slower and faster links."""
    yield from cells((20.0, 100.0), [("access", rate, rate / 4) for rate in (1.5e6, 10e6, 50e6)])


def loss() -> Iterator[Cell]:
    """Lossy paths; ten seeds each."""
    for share, seed in product((0.005, 0.02), range(1, 11)):
        yield from cells((20.0, 100.0), [("access", 4e6, 1e6)], loss=share, seed=seed)


def tls() -> Iterator[Cell]:
    """Every origin under TLS, on the paper's uplink and on a faster link."""
    for offer in ("1.3 post-quantum", "1.3 classic", "1.2"):
        yield from cells(RTTS, [("access", 4e6, 0.256e6), ("access", 10e6, 2.5e6)], offer=offer)


def overflow() -> Iterator[Cell]:
    """Queues that overflow, on the paper's pages and those of the grid of `accuracy_grid`."""
    pages = (*PAGES, *measured_pages())
    for packets in (50, 100):
        links = [("access", 10e6, 2e6)]
        yield from cells((30.0, 80.0, 150.0), links, pages=pages, queue={"packets": packets})


def http2() -> Iterator[Cell]:
    """Every origin under TLS and HTTP/2, on the same links."""
    links = [("access", 4e6, 0.256e6), ("access", 10e6, 2.5e6)]
    yield from cells(RTTS, links, offer="1.3 classic, HTTP/2")


SETS = {
    "access": access,
    "star": star,
    "close": close,
    "rates": rates,
    "loss": loss,
    "overflow": overflow,
    "tls": tls,
    "http2": http2,
}


def cells(
    rtts: tuple[float, ...],
    links: list[tuple[str, float, float]],
    *,
    keep_alive: bool = True,
    loss: float = 0.0,
    seed: int = 1,
    offer: str | None = None,
    pages: tuple[str, ...] = PAGES,
    queue: Mapping[str, Any] = QUEUE,
) -> Iterator[Cell]:
    """Every page and mode over every RTT and link."""
    for page, rtt_ms, (topology, down, up), mode in product(pages, rtts, links, MODES):
        path = {
            "topology": topology,
            "rtt_ms": rtt_ms,
            "down_bps": round(down),
            "up_bps": round(up),
            "queue": queue,
            "loss": loss,
            "seed": seed,
        }
        cell = {"page": page, "path": path, "mode": mode, "keep_alive": keep_alive}
        yield {**cell, "offer": offer} if offer else cell


def job(cell: Cell) -> dict[str, Any]:
    """What both engines are asked for."""
    secure = {"scheme": "https", "tls": OFFERS[cell["offer"]]} if "offer" in cell else {}
    return {
        **secure,
        "path": cell["path"],
        "mode": cell["mode"],
        "cookies": "warm",
        "keep_alive": cell["keep_alive"],
        "timeout_ms": LIMIT_MS,
        "request_timeout_ms": LIMIT_MS // 4,
    }


def open_page(name: str) -> LoadedPage:
    """A page of the grid by its recording's name, or any other as it is named on the command line."""
    recorded = file(name)
    [page] = load_page(str(recorded) if recorded.exists() and name not in PAGES else name)
    return page


def emulated(todo: list[Cell], pages: Mapping[str, str], journal: FilePath, jobs: int) -> dict[str, Any]:
    """The emulated answer of every cell; what the file has is not measured again."""
    kept: dict[str, Any] = json.loads(journal.read_text()) if journal.exists() else {}
    lab = Lab()

    def measure(cell: Cell) -> None:
        page = json.loads(pages[cell["page"]])
        for _ in range(3):
            answer = lab.ask("load", {**job(cell), "page": page}, timeout_s=LIMIT_MS / 1000)
            if not answer["relay"]["late"]:
                break
        kept[key(cell)] = slim(answer)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(measure, [cell for cell in todo if key(cell) not in kept]))
    journal.parent.mkdir(parents=True, exist_ok=True)
    journal.write_text(json.dumps(kept))
    return kept


def slim(answer: dict[str, Any]) -> dict[str, Any]:
    """What is compared."""
    sums = ("plt_ms", "status", "error", "bytes_down", "bytes_up", "retransmits", "tfo_accepted")
    return {
        **{name: answer[name] for name in sums},
        "connections": len(answer["connections"]),
        "late": answer["relay"]["late"],
        "dropped": answer["relay"]["dropped"],
        "ends": [request["end_ms"] for request in answer["requests"]],
    }


def key(cell: Cell) -> str:
    """A name for a cell."""
    return json.dumps(cell, sort_keys=True)


def group(cell: Cell) -> str:
    """The cell without its seed: what medians are taken over."""
    path = cell["path"]
    rates = f"{path['down_bps'] / 1e6:g}/{path['up_bps'] / 1e6:g}"
    keep = "keep" if cell["keep_alive"] else "close"
    loss = f" loss {path['loss']:g}" if path["loss"] else ""
    tls = f" TLS {cell['offer']}" if "offer" in cell else ""
    queue = f" queue {path['queue']['packets']}" if path["queue"] != QUEUE else ""
    link = f"{path['topology']} {path['rtt_ms']:3g} ms {rates}"
    return f"{cell['page']:9} {link} {keep}{loss}{queue}{tls} {cell['mode']}"


def main() -> int:
    """Prints the cells, the worst first, then the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kept", type=FilePath, required=True, help="file of emulated answers")
    parser.add_argument("--set", default="access", choices=sorted(SETS))
    parser.add_argument("--pages", nargs="+", metavar="PAGE", help="pages instead of those of the set")
    parser.add_argument("--jobs", type=int, default=4, help="emulated loads at a time")
    parser.add_argument("--worst", type=int, default=100, help="cells to print")
    options = parser.parse_args()
    todo = list(SETS[options.set]())
    if options.pages:
        todo = [{**cell, "page": page} for cell in todo if cell["page"] == PAGES[0] for page in options.pages]
    scheme = "https" if options.set in ("tls", "http2") else "http"
    pages = {name: under(scheme, open_page(name)).page.to_json() for name in {cell["page"] for cell in todo}}
    measured = emulated(todo, pages, options.kept, options.jobs)
    simulators = {name: _core.Simulator(text) for name, text in pages.items()}
    groups: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for cell in todo:
        answer = slim(json.loads(simulators[cell["page"]].load(json.dumps(job(cell)))))
        groups.setdefault(group(cell), []).append((measured[key(cell)], answer))
    report(groups, options.worst)
    return 0


def report(groups: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]], worst: int) -> None:
    """Prints relative errors of medians, the worst first."""
    rows = []
    for name, pairs in groups.items():
        real, ours = (
            {sum_: statistics.median(pair[side][sum_] or 0 for pair in pairs) for sum_ in SUMS}
            for side in (0, 1)
        )
        rows.append((ours["plt_ms"] / real["plt_ms"] - 1, name, real, ours))
    rows.sort(key=lambda row: -abs(row[0]))
    for error, name, real, ours in rows[:worst]:
        columns = "  ".join(f"{sum_} {real[sum_]:.0f}/{ours[sum_]:.0f}" for sum_ in SUMS)
        sys.stdout.write(f"{100 * error:+6.1f} %  {name}  {columns}\n")
    errors = sorted(abs(row[0]) for row in rows)
    sys.stdout.write(f"{len(rows)} cells: {spread(errors)} %\n")
    plts = {name: (real["plt_ms"], ours["plt_ms"]) for _, name, real, ours in rows}
    both = [(plts[name], plts[f"{name.removesuffix('tcp')}tfo"]) for name in plts if name.endswith(" tcp")]
    gains = [abs(tfo[0] / tcp[0] - tfo[1] / tcp[1]) for tcp, tfo in both]
    sys.stdout.write(f"improvement: {spread(sorted(gains))} points\n")


def spread(errors: list[float]) -> str:
    """Median, 95th percentile and largest of sorted shares, in per cent."""
    median, p95 = statistics.median(errors), errors[int(0.95 * (len(errors) - 1))]
    return f"median {100 * median:.2f}, p95 {100 * p95:.2f}, max {100 * errors[-1]:.2f}"


SUMS = ("plt_ms", "bytes_down", "bytes_up", "retransmits", "connections")

if __name__ == "__main__":
    sys.exit(main())

"""Writes results without a laboratory: loads with the shape of the paper's pages, from a simple model.

In the model a request waits for one of six connections to its origin. It then takes one RTT to connect
(`tcp`) or none (`tfo`, warm), one RTT for the answer, and its share of a 4 Mbit/s link. This is not the
simulator.
"""

import json
import random
from pathlib import Path as FilePath
from typing import Any

from firstflight.model.load import PlannedLoad
from firstflight.model.path import Path, Queue
from firstflight.results import Journal, LoadRecord

PAGES = {
    "amazon": ("http://www.amazon.com/", 68, 10),
    "nytimes": ("http://www.nytimes.com/", 54, 28),
    "wikipedia": ("http://en.wikipedia.org/wiki/Transmission_Control_Protocol", 29, 4),
    "wsj": ("http://online.wsj.com/home-page", 133, 45),
}
"""Name -> URL, number of requests, number of hosts, like the paper's pages."""

Rows = list[dict[str, Any]]
RTTS_MS = (20.0, 100.0, 200.0)
DOWN_BYTES_PER_MS = 500.0


def load_record(
    page: str = "wikipedia", rtt_ms: float = 100.0, mode: str = "tfo", block: int = 0, **changes: object
) -> LoadRecord:
    """One synthetic load; `changes` override values of its `load`."""
    requests: Any
    connections: Any
    requests, connections = _requests(page, rtt_ms, mode, block)
    offered = len(connections) if mode == "tfo" else 0
    load: Any = {
        **PlannedLoad(
            load_id=f"{page}-{rtt_ms:03.0f}-{block:02d}-{mode}",
            block=block,
            order=2 * block + (mode == "tfo"),
            repeat=block,
            page=page,
            path=Path("access", rtt_ms, 4_000_000, 256_000, Queue(packets=1000), 0.0),
            mode=mode,
            seed=2**63 + block,
            scheme="http",
        ).columns(),
        "started_at": f"2026-01-02T{3 + block // 60:02d}:{block % 60:02d}:05.678+00:00",
        "plt_ms": max(r["end_ms"] for r in requests),
        "first_byte_ms": requests[0]["first_byte_ms"],
        "requests": len(requests),
        "failed_requests": 0,
        "unmatched_requests": 0,
        "connections": len(connections),
        "tfo_offered": offered,
        "tfo_accepted": offered,
        "bytes_down": sum(r["wire_bytes"] for r in requests),
        "bytes_up": 460 * len(requests),
        "retransmits": 0,
        "status": "ok",
        "error": None,
        **changes,
    }
    relay: Any = {
        "packets": 4000,
        "late_p50_ms": 0.02,
        "late_p99_ms": 0.2,
        "late_max_ms": 0.9,
        "late": False,
        "dropped": 0,
    }
    return {
        "load": load,
        "requests": requests,
        "connections": connections,
        "proof": {"ok": True, "disagreements": []},
        "relay": relay | {"scheduling": "fifo"},
    }


def failed_record(**changes: object) -> LoadRecord:
    """A load that ended badly before anything was measured."""
    record = load_record(**changes)  # type: ignore[arg-type]
    failed: Any = {"status": "failed", "error": "timed out after 120 s"}
    unknown = ("plt_ms", "first_byte_ms", "requests", "connections", "bytes_down", "bytes_up")
    record["load"] |= failed | dict.fromkeys(unknown)
    record["requests"], record["connections"], record["proof"] = [], [], {}
    return record


def write_results(
    folder: FilePath,
    pages: tuple[str, ...] = tuple(PAGES),
    rtts_ms: tuple[float, ...] = RTTS_MS,
    blocks: int = 5,
) -> FilePath:
    """A whole results folder with journal, plan and environment."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.toml").write_text(PLAN)
    (folder / "environment.json").write_text(json.dumps(ENVIRONMENT))
    write_journal(
        folder,
        [
            load_record(page, rtt_ms, mode, block)
            for block in range(blocks)
            for page in pages
            for rtt_ms in rtts_ms
            for mode in ("tcp", "tfo")
        ],
    )
    return folder


def write_journal(folder: FilePath, records: list[LoadRecord]) -> FilePath:
    """A results folder that holds just these records."""
    folder.mkdir(parents=True, exist_ok=True)
    journal = Journal(folder / "journal.jsonl")
    for record in records:
        journal.append(record)
    return folder


def _requests(page: str, rtt_ms: float, mode: str, block: int) -> tuple[Rows, Rows]:
    url, count, hosts = PAGES.get(page, PAGES["wikipedia"])
    shape, noise = random.Random(page), random.Random(f"{page} {rtt_ms} {mode} {block}")
    document = url.split("/")[2]
    names = [document, *(f"cdn{n}.{document.removeprefix('www.')}" for n in range(1, hosts))]
    slots: dict[str, list[tuple[float, int]]] = {}
    requests: Rows = []
    connections: Rows = []
    link_free = 0.0
    for index in range(count):
        host = names[0] if index == 0 else shape.choice(names)
        size = int(min(shape.lognormvariate(8.6, 1.4), 250_000)) if index else 30_000
        parent = 0 if index < 3 or shape.random() < 0.8 else shape.randrange(1, index)
        after_ms = 3.0 * index + shape.random() * 120
        answer_ms = 8 + 12 * shape.random() + noise.gammavariate(2, 2)
        queued = 0.0
        if index:
            queued = requests[parent]["end_ms"] if parent else requests[0]["first_byte_ms"] + after_ms
        pool = slots.setdefault(host, [])
        new = len(pool) < 6
        free, connection = (queued, len(connections)) if new else min(pool)
        start = max(queued, free)
        sent = start + (rtt_ms if mode == "tcp" and new else 0.2)
        first = max(sent + rtt_ms + answer_ms, link_free)
        end = link_free = first + size / DOWN_BYTES_PER_MS
        if new:
            connections.append(_connection(connection, host, start, mode))
        else:
            pool.remove((free, connection))
        pool.append((end, connection))
        requests.append(
            {
                "index": index,
                "url": f"http://{host}/static/{index % 9}/item-{index}.js" if index else url,
                "origin": f"http://{host}",
                "connection": connection,
                "queued_ms": queued,
                "connect_start_ms": start if new else None,
                "connect_end_ms": sent if new else None,
                "sent_ms": sent,
                "first_byte_ms": first,
                "end_ms": end,
                "status": 200,
                "mime": "text/javascript" if index else "text/html",
                "body_bytes": size,
                "wire_bytes": size + 300,
                "initiator": parent if index else None,
                "error": None,
            }
        )
    return requests, connections


def _connection(connection: int, host: str, opened_ms: float, mode: str) -> dict[str, object]:
    tfo = mode == "tfo"
    return {
        "connection": connection,
        "origin": f"http://{host}",
        "opened_ms": opened_ms,
        "syn_payload_bytes": 460 if tfo else 0,
        "cookie": "sent" if tfo else "none",
        "syn_data_acked": tfo,
        "syn_retransmits": 0,
        "retransmits": 0,
        "bytes_down": 20_000,
        "bytes_up": 1_000,
        "closed_ms": None,
        "first_flight_bytes": 400,
        "tls": None,
        "resumed": None,
        "early_data": "none",
        "early_data_bytes": 0,
        "protocol": "tcp",
    }


PLAN = """\
pages = ["amazon", "nytimes", "wikipedia", "wsj"]
rtt = [20, 100, 200]
down = "4mbit"
up = "256kbit"
topology = "access"
queue = "1000p"
loss = 0
client = "loader"
engine = "emulate"
scheme = "http"
keep_alive = true
cookies = "warm"
mode = ["tcp", "tfo"]
repeats = 5
seed = 1
"""

ENVIRONMENT = {
    "firstflight": "0.1.0",
    "kernel": "6.18.0",
    "cpu": {"model": "Example CPU <2 cores>", "cores": 2},
    "versions": {"python": "3.11.7"},
    "calibration": [
        {
            "rtt_ms": {"asked": rtt_ms, "p50": rtt_ms + 0.04, "p99": rtt_ms + 0.3},
            "down_mbps": {"asked": 4.0, "measured": 3.99},
            "up_mbps": {"asked": 0.256, "measured": 0.2557},
            "relay": {"late_p99_ms": 0.21, "scheduling": "fifo"},
        }
        for rtt_ms in RTTS_MS
    ],
}

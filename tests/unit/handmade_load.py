"""Small loads written by hand, whose critical paths a reader can compute."""

from pathlib import Path as FilePath
from typing import Any

from synthetic_results import write_journal

from firstflight.model.load import PlannedLoad
from firstflight.model.page import Page
from firstflight.model.path import Path, Queue
from firstflight.results import LoadRecord
from firstflight.results.files import write_profiles

RTT_MS = 100.0


def page(*resources: dict[str, Any], name: str = "hand") -> Page:
    """A page of these resources, of which the first is the document.

    Fields that are not given have defaults.
    """
    rest = {
        "kind": "image",
        "mime": "image/png",
        "request_bytes": 300,
        "header_bytes": 200,
        "body_bytes": 500,
    }
    fields = [
        {
            **rest,
            "url": f"http://a.example/{index}",
            **({"kind": "document"} if index == 0 else {}),
            **resource,
        }
        for index, resource in enumerate(resources)
    ]
    return Page.from_fields({"name": name, "resources": fields})


def by(resource: int, via: str = "parser", **more: object) -> dict[str, Any]:
    """The initiator of a resource."""
    return {"resource": resource, "via": via, **more}


def request(index: int, *times: float | None, connection: int = 0, **changes: object) -> dict[str, Any]:
    """A row of `requests`.

    The times are: queued, connect start, connect end, sent, first byte, end, in ms.
    """
    names = ("queued_ms", "connect_start_ms", "connect_end_ms", "sent_ms", "first_byte_ms", "end_ms")
    return {
        "index": index,
        "url": f"http://a.example/{index}",
        "origin": "http://a.example",
        "connection": connection,
        **dict(zip(names, times, strict=True)),
        "status": 200,
        "mime": "image/png",
        "body_bytes": 500,
        "wire_bytes": 700,
        "initiator": 0 if index else None,
        **changes,
    }


def connection(number: int, opened_ms: float, **changes: object) -> Any:  # noqa: ANN401
    """A row of `connections`, of a connection opened without TFO."""
    return {
        "connection": number,
        "origin": "http://a.example",
        "opened_ms": opened_ms,
        "syn_payload_bytes": 0,
        "cookie": "none",
        "syn_data_acked": False,
        "syn_retransmits": 0,
        "bytes_down": 1000,
        "bytes_up": 500,
        "closed_ms": None,
        "first_flight_bytes": 400,
        "tls": None,
        "resumed": None,
        "early_data": "none",
        "early_data_bytes": 0,
        "protocol": "tcp",
        **changes,
    }


def load(
    plt_ms: float,
    requests: list[Any],
    connections: list[Any] | None = None,
    **changes: object,
) -> LoadRecord:
    """A load on a path with an RTT of 100 ms and unlimited rates."""
    row: Any = {
        **PlannedLoad(
            load_id="hand-tcp-001",
            block=0,
            order=0,
            repeat=1,
            page="hand",
            path=Path("access", RTT_MS, None, None, Queue(packets=1000), 0.0),
            mode="tcp",
            seed=1,
            scheme="http",
        ).columns(),
        "started_at": "2026-01-02T03:04:05.678+00:00",
        "plt_ms": plt_ms,
        "first_byte_ms": requests[0]["first_byte_ms"] if requests else None,
        "requests": len(requests),
        "failed_requests": 0,
        "unmatched_requests": 0,
        "connections": len(connections or []),
        "tfo_offered": 0,
        "tfo_accepted": 0,
        "bytes_down": 1000,
        "bytes_up": 500,
        "retransmits": 0,
        "status": "ok",
        "error": None,
        **changes,
    }
    return {
        "load": row,
        "requests": requests,
        "connections": connections or [connection(0, 0.0)],
        "proof": {"ok": True},
        "relay": {"late": False},
    }


PAGE = page({"server_ms": 20}, {"initiator": by(0)})
"""The page of `chain`."""


def chain(mode: str, block: int = 0, extra_ms: float = 0.0, **changes: object) -> LoadRecord:
    """A load of a document, and of an image over a second connection; it takes 440 ms, with TFO 240 ms."""
    shake = 100.0 if mode == "tcp" else 0.0
    first, second = shake + 120, 2 * shake + 220 + extra_ms
    rows = [
        request(0, 0, 0, shake, shake, first, first),
        request(1, first, first, first + shake, first + shake, second, second, connection=1),
    ]
    tfo = {"syn_payload_bytes": 300, "cookie": "sent", "syn_data_acked": True} if mode == "tfo" else {}
    connections = [connection(0, 0.0, **tfo), connection(1, first, **tfo)]
    named = {
        "load_id": f"hand-{mode}-{block}",
        "mode": mode,
        "treatment": mode,
        "block": block,
        "order": 2 * block + (mode == "tfo"),
    }
    return load(second, rows, connections, **{**named, **changes})


def results(folder: FilePath) -> FilePath:
    """A results folder with two blocks of `chain`."""
    write_profiles(
        write_journal(folder, [chain(mode, block) for mode in ("tcp", "tfo") for block in (0, 1)]), [PAGE]
    )
    return folder

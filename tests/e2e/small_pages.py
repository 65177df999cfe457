"""Small pages that each test one behaviour, and functions that plan and make loads of them."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from firstflight.analysis.records import known
from firstflight.engines.emulate import Emulator
from firstflight.engines.engine import Engine, Record
from firstflight.model.load import PlannedLoad
from firstflight.model.path import Path, Queue
from firstflight.pages import LoadedPage, Page

Fields = dict[str, Any]


def document(**fields: Any) -> Fields:  # noqa: ANN401
    """The first resource of a page; `fields` override."""
    return {
        "url": "http://o0.test/",
        "kind": "document",
        "mime": "text/html",
        "request_bytes": 300,
        "header_bytes": 200,
        "body_bytes": 500,
        **fields,
    }


def page(name: str, *resources: Fields) -> LoadedPage:
    """A page of these resources; the bodies are synthesised."""
    return LoadedPage(Page.from_fields({"name": name, "resources": list(resources)}))


def chain(length: int, hosts: int = 0, **fields: Any) -> LoadedPage:  # noqa: ANN401
    """A document and scripts; the client requests each one when the one before is complete.

    Each resource is on a host of its own; with `hosts`, they take that many hosts in turn.
    """
    hosts = hosts or length
    scripts = [
        {
            **document(
                url=f"http://o{number % hosts}.test/{number}.js", kind="script", mime="text/javascript"
            ),
            "initiator": {"resource": number - 1, "via": "script"},
            **fields,
        }
        for number in range(1, length)
    ]
    return page(f"chain{length}", document(**fields), *scripts)


def fan(images: int, **fields: Any) -> LoadedPage:  # noqa: ANN401
    """A document and `images` images, each on a host of its own; the client requests all images at once."""
    pictures = [
        {
            **document(url=f"http://o{number}.test/{number}.png", kind="image", mime="image/png"),
            "initiator": {"resource": 0, "via": "parser", "at_byte": 500},
            **fields,
        }
        for number in range(1, images + 1)
    ]
    return page(f"fan{images}", document(), *pictures)


def planned(page: LoadedPage, mode: str, rtt_ms: float = 20.0, **fields: Any) -> PlannedLoad:  # noqa: ANN401
    """Plans one load of `page`, at unlimited rates. `fields` override fields of `Path` and `PlannedLoad`."""
    path: dict[str, Any] = {
        "topology": "access",
        "down_bps": None,
        "up_bps": None,
        "queue": Queue(packets=1000),
        "loss": 0.0,
        "ecn": False,
        "middlebox": None,
    }
    path |= {key: fields.pop(key) for key in path.keys() & fields.keys()}
    name = f"{page.page.name}-r{rtt_ms:g}-{mode}"
    place = {"load_id": name, "block": 0, "order": 0, "repeat": 1, "seed": 1, **fields}
    return PlannedLoad(page=page.page.name, path=Path(rtt_ms=rtt_ms, **path), mode=mode, **place)


def load(engine: Engine, page: LoadedPage, mode: str, rtt_ms: float = 20.0, **fields: Any) -> Record:  # noqa: ANN401
    """Loads a page once."""
    return engine.load(planned(page, mode, rtt_ms, **fields), page)


def load_all(
    emulator: Emulator, loads: Sequence[tuple[LoadedPage, PlannedLoad]], at_a_time: int
) -> list[Record]:
    """Makes loads side by side, each in a laboratory of its own."""
    with ThreadPoolExecutor(at_a_time) as pool:
        return list(pool.map(lambda load: emulator.load(load[1], load[0]), loads))


def quickest_ms(records: Sequence[Record]) -> list[float]:
    """For each request of a page, the shortest time from queueing to its first byte in any of the loads, ms.

    The minimum is closest to what the path takes: a busy machine can only add to it.
    """
    waits = (
        [known(row["first_byte_ms"]) - known(row["queued_ms"]) for row in record["requests"]]
        for record in records
    )
    return [min(times) for times in zip(*waits, strict=True)]


def assert_ok(record: Record) -> None:
    """Asserts that the servers answered every request, and that wire, sockets and counters agree."""
    load = record["load"]
    assert (load["status"], load["error"]) == ("ok", None), load
    assert (load["failed_requests"], load["unmatched_requests"]) == (0, 0)
    assert record["proof"]["ok"] is True, record["proof"]

"""Replay of what each recorded host used: versions of HTTP and TLS, and a connection for two hosts."""

import json
from collections.abc import Mapping

import pytest
from clocks import Fields, emulate_medians, simulate

from firstflight import _core
from firstflight.engines.lab import Lab

pytestmark = pytest.mark.timing

RTT_MS = 100
PATH = {"rtt_ms": RTT_MS, "down_bps": 10_000_000, "up_bps": 10_000_000, "queue": {"packets": 1000}}
JOB: Fields = {
    "scheme": "recorded",
    "tls": {"post_quantum": False, "http": "recorded"},
    "path": PATH,
    "cookies": "warm",
}
HOSTS = [
    {"host": "a.test", "http": "1.1", "tls_trips": 2},
    {"host": "b.test", "http": "2", "tls_trips": 1, "verify_ms": 150.0},
    {"host": "c.test", "http": "2", "carrier": "b.test"},
    {"host": "d.test", "http": "1.1", "tls_trips": 1},
]

MODES = ("tcp", "tfo", "early-data")

Loads = Mapping[str, tuple[Fields, Fields]]


def resource(url: str, kind: str, **fields: object) -> dict[str, object]:
    sizes = {"request_bytes": 400, "header_bytes": 200, "body_bytes": 4_000}
    return (
        {"url": url, "kind": kind, "mime": "text/html" if kind == "document" else "image/png"}
        | sizes
        | fields
    )


def page() -> Fields:
    """A document, and three images on each of the other hosts."""
    images = [
        resource(f"https://{host}.test/{n}.png", "image", initiator={"resource": 0, "via": "parser"})
        for host in "bcd"
        for n in range(3)
    ]
    fields: Fields = {
        "format": "firstflight-profile/1",
        "name": "spoken",
        "resources": [resource("https://a.test/", "document"), *images],
        "hosts": HOSTS,
    }
    checked: Fields = json.loads(_core.check_page(json.dumps(fields)))
    return checked


@pytest.fixture(scope="module")
def loads(lab: Lab) -> Loads:
    """What the laboratory and the simulator say, by mode."""
    asked = [(page(), {**JOB, "mode": mode}) for mode in MODES]
    pairs = zip(emulate_medians(lab, asked), [simulate(*load) for load in asked], strict=True)
    return dict(zip(MODES, pairs, strict=True))


@pytest.mark.parametrize("mode", MODES)
def test_both_clocks_agree(loads: Loads, mode: str) -> None:
    emulated, simulated = loads[mode]
    for answer in (emulated, simulated):
        assert answer["status"] == "ok", answer["error"]
        assert answer["proof"]["ok"], answer["proof"]
        assert all(row["end_ms"] is not None for row in answer["requests"])
        origins = [row["origin"].removeprefix("https://") for row in answer["connections"]]
        assert [origins.count(f"{host}.test") for host in "abcd"] == [1, 1, 0, 3]
        versions = {row["origin"][8]: row["tls"] for row in answer["connections"]}
        first = "1.3" if mode == "early-data" else "1.2"
        assert versions == {"a": first, "b": "1.3", "d": "1.3"}
    assert simulated["plt_ms"] == pytest.approx(emulated["plt_ms"], rel=0.05)


def test_a_certificate_takes_as_long_as_recorded(loads: Loads) -> None:
    for answer in loads["tcp"]:
        waits = {row["url"][8]: row["sent_ms"] - row["queued_ms"] for row in answer["requests"]}
        assert 3 * RTT_MS <= waits["a"] < 3.5 * RTT_MS
        assert 2 * RTT_MS + 150 <= waits["b"] < 2.5 * RTT_MS + 150
        assert 2 * RTT_MS <= waits["d"] < 2.5 * RTT_MS

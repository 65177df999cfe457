"""Priorities (RFC 9218): urgent responses end first, and responses end in the same order on both clocks."""

import pytest
from clocks import Fields, emulate_all, simulate

from firstflight.engines.lab import Lab

pytestmark = pytest.mark.timing

DOCUMENT_BYTES = 40_000
PARTS = (
    *(("image", size, 0) for size in (60_000, 100_000, 140_000, 180_000)),
    *(("script", 80_000, 20_000) for _ in range(2)),
    ("style", 40_000, 39_000),
)
"""The resources that the document refers to: kind, size in bytes, and byte offset of the reference."""
IN_ORDER = ("style", "script", "script", "image", "image", "image", "image")
PLT = 0.05
"""How far apart the ends of the last response may be on the two clocks, relative."""
END = {"tcp": 0.15, "quic": 0.05}
"""The same for any other response.

Over TCP the socket already holds frames of other responses, so it is more.
"""


def page() -> Fields:
    """A document and all parts, on one host."""
    document = {"kind": "document", "mime": "text/html", "body_bytes": DOCUMENT_BYTES}
    parts = [
        {
            "kind": kind,
            "mime": "text/plain",
            "body_bytes": size,
            "initiator": {"resource": 0, "via": "parser", "at_byte": at_byte},
        }
        for kind, size, at_byte in PARTS
    ]
    resources = [
        {"url": f"https://a.test/{number}", "request_bytes": 400, "header_bytes": 200, **part}
        for number, part in enumerate([document, *parts])
    ]
    return {"format": "firstflight-profile/1", "name": "parts", "resources": resources}


def ends(answer: Fields) -> list[tuple[float, int]]:
    """The end of each part in ms and its index, in the order of the ends."""
    assert answer["status"] == "ok", answer["error"]
    assert answer["proof"]["ok"]
    return sorted((row["end_ms"], row["index"]) for row in answer["requests"] if row["index"])


def test_urgent_responses_end_first_and_in_the_same_order_on_both_clocks(lab: Lab) -> None:
    job = {
        "scheme": "recorded",
        "tls": {"http": "2"},
        "path": {"rtt_ms": 100, "down_bps": 4_000_000, "up_bps": 4_000_000},
        "cookies": "warm",
        "priorities": "rfc9218",
    }
    asked = [(page(), {**job, "mode": mode}) for mode in END]
    for (_, what), mode, emulated in zip(asked, END, emulate_all(lab, asked), strict=True):
        on_kernel, in_simulator = ends(emulated), ends(simulate(page(), what))
        assert [index for _, index in on_kernel] == [index for _, index in in_simulator], mode
        # Over TCP an urgent response waits for the data that the server's socket already holds.
        if mode == "quic":
            assert tuple(PARTS[index - 1][0] for _, index in on_kernel) == IN_ORDER
        for (there, _), (here, _) in zip(on_kernel, in_simulator, strict=True):
            assert here == pytest.approx(there, rel=END[mode]), mode
        assert in_simulator[-1][0] == pytest.approx(on_kernel[-1][0], rel=PLT), mode

"""The result of `firstflight check` for other programs: TAP, JUnit, and counts by requirement level."""

from xml.etree import ElementTree

import pytest

from firstflight.engines.check import Remote, Row
from firstflight.errors import UsageError
from firstflight.report.check import FORMAT, CheckDocument, count_levels, count_verdicts, render_check
from firstflight.report.conformance import as_junit, as_tap


def row(name: str, level: str, verdict: str, seen: str = "As expected.") -> Row:
    return {
        "id": name,
        "side": "server",
        "level": level,
        "section": "4.2" if level != "Linux" else "",
        "behaviour": "A server does # it.",
        "done": "A SYN.",
        "remote": False,
        "verdict": verdict,
        "seen": seen,
        "packets": [],
        "counters": None,
        "elapsed_ms": 12.0,
        "capture": None,
        "hint": "try again",
    }


ROWS = [
    row("R1", "MUST", "holds"),
    row("R2", "MUST NOT", "deviates", "It did.\x1b[2J <b>&</b>"),
    row("R3", "SHOULD", "deviates"),
    row("R4", "MAY", "not applicable"),
    row("R5", "Linux", "deviates"),
    row("R6", "SHOULD", "not judged", "No SYN came."),
]


@pytest.fixture
def document() -> CheckDocument:
    return {
        "format": FORMAT,
        "kernel": "6.18.0",
        "ip": "4",
        "server": {"command": "nginx", "port": 80},
        "connect": None,
        "elapsed_s": 1.5,
        "verdicts": count_verdicts(ROWS),
        "levels": count_levels(ROWS),
        "rows": ROWS,
    }


def test_must_not_counts_as_must_and_may_as_described() -> None:
    counts = {level: {v: n for v, n in found.items() if n} for level, found in count_levels(ROWS).items()}
    assert counts == {
        "MUST": {"holds": 1, "deviates": 1},
        "SHOULD": {"deviates": 1, "not judged": 1},
        "described": {"not applicable": 1},
        "Linux": {"deviates": 1},
    }


def test_tap_fails_a_must_and_what_was_not_judged_and_nothing_else(document: CheckDocument) -> None:
    text = as_tap(document)
    assert [line for line in text.splitlines() if "ok " in line[:7]] == [
        r"ok 1 - R1 (MUST, section 4.2): A server does \# it.",
        r"not ok 2 - R2 (MUST NOT, section 4.2): A server does \# it.",
        r"not ok 3 - R3 (SHOULD, section 4.2): A server does \# it. # TODO SHOULD",
        r"ok 4 - R4 (MAY, section 4.2): A server does \# it. # SKIP not applicable",
        r"not ok 5 - R5 (Linux): A server does \# it. # TODO Linux",
        r"not ok 6 - R6 (SHOULD, section 4.2): A server does \# it.",
    ]
    assert "\x1b" not in text
    assert text.count("  ---\n") == text.count("  ...\n") == len(ROWS)


def test_junit_tells_failures_errors_and_skipped_apart(document: CheckDocument) -> None:
    suite = ElementTree.fromstring(as_junit(document))[0]
    assert {key: suite.attrib[key] for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "6",
        "failures": "1",
        "errors": "1",
        "skipped": "3",
    }
    found = {
        case.attrib["name"].split()[0]: [child.tag for child in case if child.tag != "system-out"]
        for case in suite.iter("testcase")
    }
    skipped = {name: ["skipped"] for name in ("R3", "R4", "R5")}
    assert found == {"R1": [], "R2": ["failure"], "R6": ["error"]} | skipped
    failure = suite.find(".//failure")
    assert failure is not None
    assert failure.attrib["message"].endswith("<b>&</b>")


def test_the_page_counts_levels_and_links_what_deviates(document: CheckDocument) -> None:
    page = render_check(document)
    assert '<th scope="row">MUST</th><td class="number">1</td><td class="number">1</td>' in page
    assert '<a href="#R2">R2</a>' in page


@pytest.mark.parametrize(
    ("name", "address", "host"),
    [
        ("127.0.0.1", "127.0.0.1:80", "127.0.0.1"),
        ("127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1:8080"),
        ("[::1]", "[::1]:80", "[::1]"),
        ("[::1]:8080", "[::1]:8080", "[::1]:8080"),
    ],
)
def test_a_server_is_named_by_host_and_port(name: str, address: str, host: str) -> None:
    assert Remote.named(name, None).job() == {"address": address, "host": host}


@pytest.mark.parametrize(
    "name", ["", ":80", "::1", "a b", "user@host", "host:", "host:0", "host:65536", "[::1", "x/y"]
)
def test_anything_else_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is not HOST:PORT"):
        Remote.named(name, None)

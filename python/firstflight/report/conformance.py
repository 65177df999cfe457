"""The result of a check for programs that count tests: TAP and JUnit.

Both agree with the exit code: a test fails where a MUST deviates, and where a row could not be judged. Any
other deviation is told and does not fail: TODO in TAP, skipped in JUnit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from xml.etree import ElementTree

from firstflight.engines.check import DEVIATES, HOLDS, NOT_APPLICABLE, NOT_JUDGED, Row, must_deviate
from firstflight.report.check import CheckDocument, examined_name
from firstflight.text import visible


def as_tap(document: CheckDocument) -> str:
    """Test Anything Protocol, version 14 (testanything.org): a line for each row, and what was seen.

    Args:
        document: As docs/check.md describes it.
    """
    rows = document["rows"]
    lines = ["TAP version 14", f"1..{len(rows)}", f"# {visible(examined_name(document))}"]
    for number, row in enumerate(rows, 1):
        lines.extend(_tap_lines(number, row))
    return "\n".join(lines) + "\n"


def _tap_lines(number: int, row: Row) -> Iterator[str]:
    passed = "ok" if row["verdict"] in (HOLDS, NOT_APPLICABLE) else "not ok"
    directive = ""
    if row["verdict"] == NOT_APPLICABLE:
        directive = " # SKIP not applicable"
    elif row["verdict"] == DEVIATES and not must_deviate(row):
        directive = f" # TODO {row['level']}"
    about = f"{row['id']} {_where(row)}: {row['behaviour']}"
    yield f"{passed} {number} - {_plain(about)}{directive}"
    yield "  ---"
    for key in ("level", "section", "side", "verdict", "seen", "hint"):
        if value := row.get(key):
            # A JSON string is a YAML string.
            yield f"  {key}: {json.dumps(visible(str(value)), ensure_ascii=False)}"
    yield f"  duration_ms: {row.get('elapsed_ms', 0.0):.1f}"
    yield "  ..."


def _plain(text: str) -> str:
    """A description: a `#` would begin a directive."""
    return visible(text).replace("\\", "\\\\").replace("#", "\\#")


def as_junit(document: CheckDocument) -> bytes:
    """The XML that JUnit's Ant task writes and test reports of CI systems read.

    Args:
        document: As docs/check.md describes it.
    """
    rows = document["rows"]
    counts = {
        "tests": len(rows),
        "failures": sum(map(must_deviate, rows)),
        "errors": sum(row["verdict"] == NOT_JUDGED for row in rows),
        "skipped": sum(_is_skipped(row) for row in rows),
    }
    totals = {key: str(count) for key, count in counts.items()} | {"time": f"{document['elapsed_s']:.3f}"}
    root = ElementTree.Element("testsuites", totals)
    suite = ElementTree.SubElement(root, "testsuite", {"name": "firstflight check", **totals})
    properties = ElementTree.SubElement(suite, "properties")
    known = {"examined": examined_name(document), "kernel": document["kernel"], "ip": document["ip"]}
    for name, value in known.items():
        ElementTree.SubElement(properties, "property", name=name, value=visible(value))
    for row in rows:
        _add_case(suite, row)
    ElementTree.indent(root)
    text: str = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'.encode()


def _is_skipped(row: Row) -> bool:
    return row["verdict"] == NOT_APPLICABLE or (row["verdict"] == DEVIATES and not must_deviate(row))


def _add_case(suite: ElementTree.Element, row: Row) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=f"RFC7413.{row['side']}",
        name=f"{row['id']} {_where(row)}",
        time=f"{row.get('elapsed_ms', 0.0) / 1e3:.3f}",
    )
    seen = visible(row["seen"])
    if row["verdict"] == NOT_JUDGED:
        ElementTree.SubElement(case, "error", message=seen, type=NOT_JUDGED).text = row["hint"]
    elif must_deviate(row):
        ElementTree.SubElement(case, "failure", message=seen, type=row["level"]).text = row["behaviour"]
    elif _is_skipped(row):
        ElementTree.SubElement(case, "skipped", message=f"{row['verdict']} ({row['level']}): {seen}")
    ElementTree.SubElement(case, "system-out").text = f"{row['behaviour']}\n{row['done']}\n{seen}"


def _where(row: Row) -> str:
    return f"({row['level']}, section {row['section']})" if row["section"] else f"({row['level']})"

"""The result of a check as TAP and JUnit, for programs that count tests.

Both agree with the exit code: a test fails if a MUST deviates or a row could not be judged. Any other
deviation is reported but does not fail: it is TODO in TAP and skipped in JUnit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from firstflight.engines.check import DEVIATES, HOLDS, NOT_APPLICABLE, NOT_JUDGED, Row, must_deviate
from firstflight.report.check import CheckDocument, examined_name
from firstflight.report.junit import Case, junit_xml
from firstflight.text import visible


def as_tap(document: CheckDocument) -> str:
    """Test Anything Protocol, version 14 (testanything.org): a line for each row, with what was seen.

    Args:
        document: The result, in the form of docs/check.md.
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
            # A JSON string is also a YAML string.
            yield f"  {key}: {json.dumps(visible(str(value)), ensure_ascii=False)}"
    yield f"  duration_ms: {row.get('elapsed_ms', 0.0):.1f}"
    yield "  ..."


def _plain(text: str) -> str:
    """Escapes a description, in which a `#` would start a directive."""
    return visible(text).replace("\\", "\\\\").replace("#", "\\#")


def as_junit(document: CheckDocument) -> bytes:
    """JUnit XML with a test for each row.

    Args:
        document: The result, in the form of docs/check.md.
    """
    known = {"examined": examined_name(document), "kernel": document["kernel"], "ip": document["ip"]}
    return junit_xml("firstflight check", [*map(_case, document["rows"])], known, document["elapsed_s"])


def _is_skipped(row: Row) -> bool:
    return row["verdict"] == NOT_APPLICABLE or (row["verdict"] == DEVIATES and not must_deviate(row))


def _case(row: Row) -> Case:
    seen = visible(row["seen"])
    case = Case(
        f"RFC7413.{row['side']}",
        f"{row['id']} {_where(row)}",
        output=f"{row['behaviour']}\n{row['done']}\n{seen}",
        elapsed_s=row.get("elapsed_ms", 0.0) / 1e3,
    )
    if row["verdict"] == NOT_JUDGED:
        return replace(case, outcome="error", message=seen, kind=NOT_JUDGED, text=row["hint"])
    if must_deviate(row):
        return replace(case, outcome="failure", message=seen, kind=row["level"], text=row["behaviour"])
    if _is_skipped(row):
        return replace(case, outcome="skipped", message=f"{row['verdict']} ({row['level']}): {seen}")
    return case


def _where(row: Row) -> str:
    return f"({row['level']}, section {row['section']})" if row["section"] else f"({row['level']})"

"""JUnit XML: the form that JUnit's Ant task writes and that test reports of CI systems read.

There is no standard for it. A suite has cases, each with a failure, an error or a skip, and its output.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

from firstflight.text import visible_lines

_NO_CHARACTERS = dict.fromkeys((0xFFFE, 0xFFFF), "\N{REPLACEMENT CHARACTER}")

Outcome = Literal["passed", "failure", "error", "skipped"]


@dataclass(frozen=True)
class Case:
    """A test and its result.

    Attributes:
        classname: Its group, with dots.
        name: Its name.
        outcome: Its result.
        message: The reason, in one line, if it did not pass.
        kind: The type of a failure or an error.
        text: Details of the reason, in lines.
        output: Further output, in lines; empty: none.
        elapsed_s: Its duration, s; `None`: not known.
    """

    classname: str
    name: str
    outcome: Outcome = "passed"
    message: str = ""
    kind: str = ""
    text: str = ""
    output: str = ""
    elapsed_s: float | None = None


def junit_xml(
    name: str,
    cases: Sequence[Case],
    properties: Mapping[str, str] | None = None,
    elapsed_s: float | None = None,
) -> bytes:
    """The XML of a suite.

    Args:
        name: Name of the suite.
        cases: Its tests.
        properties: Further properties, by name.
        elapsed_s: Duration of the suite, s; `None`: not known.
    """
    counts = Counter(case.outcome for case in cases)
    totals = {
        "tests": str(len(cases)),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]),
        **_time(elapsed_s),
    }
    root = ElementTree.Element("testsuites", totals)
    suite = ElementTree.SubElement(root, "testsuite", {"name": name, **totals})
    if properties:
        table = ElementTree.SubElement(suite, "properties")
        for key, value in properties.items():
            ElementTree.SubElement(table, "property", name=key, value=_legible(value))
    for case in cases:
        _add(suite, case)
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _add(suite: ElementTree.Element, case: Case) -> None:
    found = ElementTree.SubElement(
        suite,
        "testcase",
        {"classname": _legible(case.classname), "name": _legible(case.name), **_time(case.elapsed_s)},
    )
    if case.outcome != "passed":
        said = {"message": _legible(case.message)} | ({"type": _legible(case.kind)} if case.kind else {})
        reason = ElementTree.SubElement(found, case.outcome, said)
        reason.text = _legible(case.text) or None
    if case.output:
        ElementTree.SubElement(found, "system-out").text = _legible(case.output)


def _time(elapsed_s: float | None) -> dict[str, str]:
    return {} if elapsed_s is None else {"time": f"{elapsed_s:.3f}"}


def _legible(text: str) -> str:
    """Text without characters that XML 1.0 cannot contain or that control a terminal."""
    return visible_lines(text).translate(_NO_CHARACTERS)

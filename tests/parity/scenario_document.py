"""Writes the table of scenarios in docs/simulator.md from the scenarios that the tests run.

python tests/parity/scenario_document.py
"""

from pathlib import Path

from scenario import Row, Scenario
from scenarios import SCENARIOS

DOCUMENT = Path(__file__).parents[2] / "docs" / "simulator.md"
BEGIN, END = "<!-- scenarios -->\n", "<!-- end of scenarios -->\n"
"""The markers between which this program replaces the text of the document."""

HEAD = (
    "| what holds | why | mode | PLT | connections | SYN data | sent again |\n|---|---|---|---|---|---|---|\n"
)


def document(text: str) -> str:
    """The document with a new table."""
    head, _, rest = text.partition(BEGIN)
    rows = "".join(f"| {' | '.join(cells(scenario))} |\n" for scenario in SCENARIOS)
    return f"{head}{BEGIN}\n{HEAD}{rows}\n{END}{rest.partition(END)[2]}"


def cells(scenario: Scenario) -> list[str]:
    """A row of the table."""
    opened = scenario.connections
    cookies = "" if scenario.cookies == "warm" else f", {scenario.cookies}"
    close = "" if scenario.keep_alive else ", close"
    return [
        scenario.name,
        scenario.source,
        f"{scenario.mode}{cookies}{close}",
        str(scenario.plt),
        str(len(opened)),
        _each([syn_data(row) for row in opened]),
        _each([sent_again(row) for row in opened]),
    ]


def syn_data(row: Row) -> str:
    """How much data the SYN carried, and whether the server acknowledged it."""
    if not row["syn_payload_bytes"]:
        return "asks for a cookie" if row["cookie"] == "requested" else "-"
    return f"{row['syn_payload_bytes']} B {'taken' if row['syn_data_acked'] else 'not taken'}"


def sent_again(row: Row) -> str:
    """How many SYNs and how many other segments were sent again."""
    syns, others = row["syn_retransmits"], row["retransmits"]
    parts = [f"{syns} SYN{'s' if syns > 1 else ''}"] if syns else []
    if isinstance(others, tuple):
        parts.append(f"{others[0]} to {others[1]} others")
    elif others:
        parts.append(f"{others} other{'s' if others > 1 else ''}")
    return " + ".join(parts) or "-"


def _each(texts: list[str]) -> str:
    return texts[0] if len(set(texts)) == 1 else ", ".join(texts)


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")

"""The summary on stderr after a program has run inside the laboratory."""

from __future__ import annotations

from collections.abc import Iterator

from firstflight.cli.talk import Talk
from firstflight.engines.exec import ExecRecord
from firstflight.plural import plural

_NAMED = 5
"""Unmatched requests that are named; the record has them all."""


def say_summary(record: ExecRecord, program: str, talk: Talk) -> None:
    """Says what crossed the wire, and what makes it doubtful.

    Args:
        record: As `engines.exec.run_inside` gives it.
        program: What the program is called.
        talk: Where it is said; a quiet one leaves out all but warnings.
    """
    for line in _lines(record, program):
        talk.note(line)
    _say_unmatched(record, talk)
    proof, relay = record["proof"], record["relay"]
    if not proof["ok"]:
        talk.warn(f"the witnesses of TFO disagree: {'; '.join(proof['disagreements'])}")
    if relay["late"]:
        talk.warn(
            f"the relay sent packets up to {relay['late_max_ms']:.1f} ms late",
            "stop other work on this machine",
        )


def _lines(record: ExecRecord, program: str) -> Iterator[str]:
    seconds = record["elapsed_ms"] / 1000
    yield f"{program}: exit code {record['exit_code']} after {seconds:.2f} s"
    opened = len(record["connections"])
    yield (
        f"connections: {opened}; data in the SYN: {record['tfo_offered']} offered, "
        f"{record['tfo_accepted']} accepted{_witnesses(record)}"
    )
    yield (
        f"bytes: {record['bytes_down']:,} down, {record['bytes_up']:,} up; "
        f"segments retransmitted: {record['retransmits']}"
    )
    if record["requests"]:
        yield f"requests answered from the pages: {record['requests']}"


def _witnesses(record: ExecRecord) -> str:
    agree = record["connections"] and record["proof"]["ok"]
    return " (ledger, servers' sockets and kernel counters agree)" if agree else ""


def _say_unmatched(record: ExecRecord, talk: Talk) -> None:
    unmatched = record["unmatched_requests"]
    if not unmatched:
        return
    names = record["unmatched"][:_NAMED]
    more = f", and {unmatched - len(names)} more" if unmatched > len(names) else ""
    talk.warn(
        f"{plural(unmatched, 'request')} that no page answers: {', '.join(names)}{more}",
        "name the page that has it with --pages; firstflight pages shows what a page consists of",
    )

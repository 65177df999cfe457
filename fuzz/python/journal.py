"""Journals, and what a report makes of them."""

import atheris

from target import FOLDER, main, refused_or

with atheris.instrument_imports(include=["firstflight"]):
    from firstflight.analysis.summary import read_measured
    from firstflight.report.write import write_report
    from firstflight.results import Journal

JOURNAL = FOLDER / "results" / "journal.jsonl"


def test(data: bytes) -> None:
    """Reads a journal, appends what was read, reads that again, makes the report."""
    JOURNAL.parent.mkdir(exist_ok=True)
    JOURNAL.write_bytes(data)
    records = refused_or(Journal(JOURNAL).records)
    if not records:
        return
    for record in records:
        Journal(JOURNAL).append(record)
    assert Journal(JOURNAL).records() == records
    refused_or(lambda: write_report(read_measured(JOURNAL.parent)))


main(test)

"""Shows what a results folder says: tables and report into the folder, the table to stdout."""

from pathlib import Path

from firstflight.analysis.summary import summarize
from firstflight.cli.talk import Talk, data_console, show_json
from firstflight.report import write_report
from firstflight.report.console import print_summary


def present(folder: Path, talk: Talk, *, as_json: bool) -> None:
    """Writes tables, figures and report, then prints the summary and where the figures lie.

    Args:
        folder: The results folder.
        talk: Is told what is being written.
        as_json: Prints one JSON document instead of the table.
    """
    write_report(folder, figures=True, progress=talk.note)
    summary = summarize(folder)
    if as_json:
        show_json({"folder": str(folder), **summary})
        return
    console = data_console()
    print_summary(summary, console)
    console.print(
        f"figures: {folder / 'figures'}\nreport:  {folder / 'report.html'}", markup=False, soft_wrap=True
    )

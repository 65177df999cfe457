"""What people read: a table, figures, a page, the course's file. Made from a results folder alone."""

from firstflight.report.console import print_summary, render_summary
from firstflight.report.explained import print_explanations
from firstflight.report.write import write_report

__all__ = ["print_explanations", "print_summary", "render_summary", "write_report"]

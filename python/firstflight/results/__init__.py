"""The results of a run: the journal, and the tables that `tables` makes from it."""

from firstflight.results.files import check_writable, journal_path, write_whole
from firstflight.results.journal import Journal
from firstflight.results.records import ConnectionRow, LoadRecord, LoadRow, RequestRow
from firstflight.results.schema import CONNECTIONS, LOADS, REQUESTS, TABLES

__all__ = [
    "CONNECTIONS",
    "LOADS",
    "REQUESTS",
    "TABLES",
    "ConnectionRow",
    "Journal",
    "LoadRecord",
    "LoadRow",
    "RequestRow",
    "check_writable",
    "journal_path",
    "write_whole",
]

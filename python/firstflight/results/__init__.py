"""What a run leaves behind: the journal, and the tables made from it."""

from firstflight.results.files import journal_path, write_whole
from firstflight.results.journal import Journal
from firstflight.results.schema import CONNECTIONS, LOADS, REQUESTS, TABLES, LoadRecord
from firstflight.results.tables import connection_frame, load_frame, request_frame, write_tables

__all__ = [
    "CONNECTIONS",
    "LOADS",
    "REQUESTS",
    "TABLES",
    "Journal",
    "LoadRecord",
    "connection_frame",
    "journal_path",
    "load_frame",
    "request_frame",
    "write_tables",
    "write_whole",
]

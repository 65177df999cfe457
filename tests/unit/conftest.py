"""Fixtures of the unit tests."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

MEMORY = "/dev/shm"


@pytest.fixture(scope="session", autouse=True)
def cache() -> Iterator[Path]:
    """Replaces the user's cache by an empty folder for all tests.

    It is in memory, since bodies are synced to disk.
    """
    before = os.environ.get("XDG_CACHE_HOME")
    with TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        yield Path(folder)
    os.environ.pop("XDG_CACHE_HOME")
    if before is not None:
        os.environ["XDG_CACHE_HOME"] = before

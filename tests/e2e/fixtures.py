"""Fixtures of tests that need the real laboratory or the real program, for `conftest.py` of their folders."""

from pathlib import Path

import pytest
from program import Program, unavailable

from firstflight.engines.emulate import Emulator
from firstflight.engines.lab import Lab
from firstflight.errors import LabError


@pytest.fixture(scope="session")
def emulator() -> Emulator:
    """The engine on the real clock.

    If no laboratory can be built, tests fail in CI and are skipped elsewhere.
    """
    try:
        emulator = Emulator()
        missing = [f"{check.name}: {check.detail}" for check in emulator.examine() if not check.ok]
    except LabError as error:
        missing = [f"{error.message} ({error.hint})"]
    if missing:
        unavailable(f"no laboratory can be built here: {'; '.join(missing)}")
    return emulator


@pytest.fixture
def lab(emulator: Emulator) -> Lab:
    """The laboratory itself, for tests whose jobs no plan can describe."""
    return Lab()


@pytest.fixture
def program(emulator: Emulator, tmp_path: Path) -> Program:
    """The program `firstflight`, in an empty folder with an empty home."""
    return Program(tmp_path)

"""Fixtures of the containment tests: the real laboratory, the real program, and a host with ways into it."""

import pytest
from baits import host_with_ways_in
from fixtures import bytecode, emulator, lab, program

__all__ = ["bytecode", "emulator", "host_with_ways_in", "lab", "program"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "core: made once more as an ordinary user where the tests run as root")

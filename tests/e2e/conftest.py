"""Fixtures of the end-to-end tests: the real laboratory, the real program."""

import pytest
from fixtures import bytecode, emulator, lab, program

__all__ = ["bytecode", "emulator", "lab", "program"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "core: made once more as an ordinary user where the tests run as root")

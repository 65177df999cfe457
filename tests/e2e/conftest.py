"""Fixtures of the end-to-end tests: the real laboratory, the real program."""

from fixtures import emulator, lab, program

__all__ = ["emulator", "lab", "program"]

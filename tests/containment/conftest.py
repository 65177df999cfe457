"""Fixtures of the containment tests: the real laboratory, the real program, and a host with ways into it."""

from baits import host_with_ways_in
from fixtures import emulator, lab, program

__all__ = ["emulator", "host_with_ways_in", "lab", "program"]

"""The command line: one module per command, no logic of its own."""

from firstflight.cli.app import main

__all__ = ["main"]

"""vl-convert in a process of its own: it holds the interpreter's lock while it works."""

from __future__ import annotations

import json
import subprocess
import sys

_CONVERT = """
import json, sys, vl_convert
name, options = sys.argv[1:]
made = getattr(vl_convert, name)(sys.stdin.read(), **json.loads(options))
sys.stdout.buffer.write(made if isinstance(made, bytes) else made.encode())
"""


def elsewhere(function: str, content: bytes, **options: float) -> bytes:
    """Calls a function of vl-convert in another process.

    Args:
        function: Its name.
        content: Its first argument, as UTF-8.
        options: The others.
    """
    command = [sys.executable, "-P", "-c", _CONVERT, function, json.dumps(options)]
    return subprocess.run(command, input=content, stdout=subprocess.PIPE, check=True).stdout

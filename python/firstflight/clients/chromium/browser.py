"""Which browser is driven, and whether it can lock its processes up."""

import ctypes
import os
import shutil
from pathlib import Path

from firstflight.clients.versions import PROGRAMS, ask_version
from firstflight.errors import UsageError

_NAMESPACES = 0x10000000 | 0x20000000 | 0x40000000
"""CLONE_NEWUSER, CLONE_NEWPID and CLONE_NEWNET: with the first alone the sandbox cannot be built."""


def find_browser(named: str = "") -> Path:
    """The browser called `named`, or the system's.

    Args:
        named: A path or the name of a program; empty for the first that is installed.

    Raises:
        UsageError: There is none.
    """
    found = next(filter(None, map(shutil.which, [named] if named else PROGRAMS["chromium"])), None)
    if found:
        return Path(found).absolute()
    if named:
        raise UsageError(f"browser: {named} is not a program", "name the browser's executable file")
    raise UsageError(
        "client: no Chromium on this machine",
        "install your system's package chromium, or name another: --browser PATH",
    )


def browser_version(browser: Path) -> str:
    """What the browser says it is; empty if it does not say."""
    return ask_version(str(browser))


def can_be_locked_up() -> bool:
    """Whether Chromium's sandbox works for this process: it refuses root, and needs namespaces of its own."""
    if os.geteuid() == 0:
        return False
    child = os.fork()
    if child == 0:
        os._exit(ctypes.CDLL(None).unshare(_NAMESPACES) != 0)
    return os.waitpid(child, 0)[1] == 0

"""Finds the clients that are installed on this machine, and their versions."""

import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from firstflight.errors import UsageError

PROGRAMS = {
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "firefox": ("firefox-esr", "firefox"),
    "wget2": ("wget2",),
    "curl": ("curl",),
}
"""Possible names of each client's program, in the order of preference."""

DRIVERS = {"chromium": "playwright"}
"""The Python package that a client needs in addition; the extra `browser` installs it."""

_INSTALL_DRIVER = "pip install 'firstflight[browser]'"
_VERSION = re.compile(r"\d+(\.\d+)+")
_TIMEOUT_S = 20


@dataclass(frozen=True)
class Client:
    """A client, installed or not.

    Attributes:
        name: Its name in plans.
        program: Its path; empty when it is not installed.
        version: Its version; empty when it is not installed or the program reports none.
        lacks: The Python package that it needs and that is not installed; empty when none is missing.
        hint: How to install what is missing; empty when nothing is missing.
    """

    name: str
    program: str
    version: str
    lacks: str = ""
    hint: str = ""


def find_browser(client: str, named: str = "") -> Path:
    """Finds the browser called `named`, or the system's.

    Args:
        client: The client that needs the browser.
        named: A path or the name of a program; empty: the first one that is installed.

    Raises:
        UsageError: There is no such browser, or the Python package that drives it is missing.
    """
    found = next(filter(None, map(shutil.which, [named] if named else PROGRAMS[client])), None)
    if found and (package := missing_driver(client)):
        raise UsageError(f"client: {client} needs the Python package {package}", _INSTALL_DRIVER)
    if found:
        return Path(found).absolute()
    if named:
        raise UsageError(f"browser: {named} is not a program", "name the browser's executable file")
    raise UsageError(
        f"client: no {client.title()} on this machine",
        f"install your system's package {PROGRAMS[client][0]}, or name another: --browser PATH",
    )


def missing_driver(client: str) -> str:
    """The Python package that this client needs and that is not installed; empty when there is none."""
    package = DRIVERS.get(client, "")
    return package if package and find_spec(package) is None else ""


def installed_clients() -> list[Client]:
    """Every client firstflight knows, the built-in loader first."""
    return [_look_up(name) for name in ("loader", *PROGRAMS)]


def client_versions(names: Iterable[str], program: str = "") -> dict[str, str]:
    """Versions, by name, of those of `names` that are installed.

    Args:
        names: The clients.
        program: Path of the program, for the client that is one; empty: look it up in the PATH.
    """
    found = (_look_up(name, program) for name in names)
    return {client.name: client.version for client in found if client.program}


def _look_up(name: str, program: str = "") -> Client:
    if name not in PROGRAMS:
        return Client(name, "built in", version("firstflight"))
    program = program or next(filter(None, map(shutil.which, PROGRAMS[name])), "")
    hint = f"only to load pages with {name}"
    if not program:
        return Client(name, "", "", hint=f"{hint}; install your system's package")
    lacks = missing_driver(name)
    return Client(name, program, ask_version(program), lacks, f"{hint}: {_INSTALL_DRIVER}" if lacks else "")


def ask_version(program: str) -> str:
    """The version that `program --version` prints; empty if it prints none."""
    try:
        answer = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    found = _VERSION.search(answer.stdout)
    return found[0] if found else ""

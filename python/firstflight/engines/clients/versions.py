"""Which clients this machine has, and in which version."""

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
"""What the program of each client may be called."""

DRIVERS = {"chromium": "playwright"}
"""The Python package that a client needs in addition, of the extra `browser`."""

_INSTALL_DRIVER = "pip install 'firstflight[browser]'"
_VERSION = re.compile(r"\d+(\.\d+)+")
_TIMEOUT_S = 20


@dataclass(frozen=True)
class Client:
    """A client.

    Attributes:
        name: What it is called in plans.
        program: Its path; empty when it is not installed.
        version: Empty also when the program does not say it.
        lacks: The Python package that it needs and that is not installed; empty when there is none.
        hint: How to install what is missing; empty when nothing is.
    """

    name: str
    program: str
    version: str
    lacks: str = ""
    hint: str = ""


def find_browser(client: str, named: str = "") -> Path:
    """The browser called `named`, or the system's.

    Args:
        client: The client it is to be.
        named: A path or the name of a program; empty for the first that is installed.

    Raises:
        UsageError: There is none, or the Python package that drives it is missing.
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
    """Version by name of those of these clients that are installed.

    Args:
        names: The clients.
        program: Path of the one that is a program; empty: it is on the PATH.
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
    """The version that `program --version` says; empty if it says none."""
    try:
        answer = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    found = _VERSION.search(answer.stdout)
    return found[0] if found else ""

"""Builds the one command that installs or enables what `firstflight doctor` finds missing.

It is for this system's package manager and for the current user. Missing kernel features are reported by the
laboratory, with the command in its hint.
"""

import os
import platform
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from firstflight.engines.emulate import Check

_INSTALL = {"apt": "apt-get install", "dnf": "dnf install", "pacman": "pacman -S"}
_PROGRAM = {"apt": "apt-get", "dnf": "dnf", "pacman": "pacman"}
_FAMILIES = {
    "debian": "apt",
    "ubuntu": "apt",
    "fedora": "dnf",
    "rhel": "dnf",
    "centos": "dnf",
    "arch": "pacman",
}
_PACKAGES = {
    "apt": {"chromium": "chromium", "firefox": "firefox-esr", "wget2": "wget2", "curl": "curl"},
    "dnf": {"chromium": "chromium", "firefox": "firefox", "wget2": "wget2", "curl": "curl"},
    # Arch has wget2 only in the user repository, from which pacman does not install.
    "pacman": {"chromium": "chromium", "firefox": "firefox", "curl": "curl"},
}
_UBUNTU = {"wget2": "wget2", "curl": "curl"}
"""Ubuntu's browser packages install snaps, which have a sandbox of their own and were not tested."""

_ENABLES = re.compile(r"`(?:sudo )?((?:sysctl|modprobe|chmod) [^`]+)`")
_PIP = re.compile(r"pip install '[^']+'")
_CONTAINERS = ("/.dockerenv", "/run/.containerenv")


@dataclass(frozen=True)
class System:
    """The properties of a system that decide how something is installed.

    Attributes:
        release: `ID` and `ID_LIKE` of `os-release`, if any.
        programs: Which package managers, and whether `sudo`, are on the PATH.
        is_root: Whether the user is root.
        is_container: Whether the kernel's settings belong to another machine.
        has_lists: Whether apt has package lists; in a new container it has none.
    """

    release: Mapping[str, str]
    programs: frozenset[str]
    is_root: bool = False
    is_container: bool = False
    has_lists: bool = True
    manager: str = field(init=False)

    def __post_init__(self) -> None:
        """Chooses the package manager of the system's family. The PATH may have others: Debian has dnf."""
        families = [self.release.get("ID", ""), *self.release.get("ID_LIKE", "").split()]
        own = [_FAMILIES[family] for family in families if family in _FAMILIES]
        found = [manager for manager in _INSTALL if _PROGRAM[manager] in self.programs]
        object.__setattr__(self, "manager", next(iter(own + found), ""))

    @classmethod
    def here(cls) -> "System":
        """The properties of this system."""
        try:
            release = platform.freedesktop_os_release()
        except OSError:
            release = {}
        return cls(
            release,
            frozenset(name for name in (*_PROGRAM.values(), "sudo") if shutil.which(name)),
            is_root=os.geteuid() == 0,
            is_container=any(Path(file).exists() for file in _CONTAINERS),
            has_lists=any(Path("/var/lib/apt/lists").glob("*_Packages*")),
        )

    def package(self, client: str) -> str:
        """The package of a client; empty if none is known."""
        packages = _PACKAGES.get(self.manager, {})
        if self.manager == "apt" and self.release.get("ID") == "ubuntu":
            packages = _UBUNTU
        return packages.get(client, "")


def one_command(checks: Iterable[Check], system: System) -> str:
    """The command for everything that is missing and that a command can install; empty if there is none.

    Args:
        checks: All checks.
        system: The system on which it is to be installed.
    """
    missing = [check for check in checks if not check.ok]
    steps = list(_steps(missing, system))
    if steps and not system.is_root:
        sudo = "sudo" in system.programs
        steps = [f"sudo {step}" for step in steps] if sudo else [f"su -c '{' && '.join(steps)}'"]
    libraries = dict.fromkeys(found[0] for check in missing if (found := _PIP.search(check.hint)))
    return " && ".join([*steps, *libraries])


def _steps(missing: list[Check], system: System) -> Iterator[str]:
    """The commands that need root."""
    clients = [
        check.name.removeprefix("client ")
        for check in missing
        if check.name.startswith("client ") and check.detail.startswith("not installed")
    ]
    packages = [package for package in map(system.package, clients) if package]
    if packages and system.manager == "apt" and not system.has_lists:
        yield "apt-get update"
    if packages:
        yield f"{_INSTALL[system.manager]} {' '.join(packages)}"
    if not system.is_container:
        found = (_ENABLES.search(check.hint) for check in missing)
        yield from (step[1] for step in found if step)

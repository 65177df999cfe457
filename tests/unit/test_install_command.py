from dataclasses import replace

import pytest

from firstflight.cli.install import System, one_command
from firstflight.engines.emulate import Check

DEBIAN = System({"ID": "debian"}, frozenset({"apt-get", "sudo"}))
UBUNTU = System({"ID": "ubuntu", "ID_LIKE": "debian"}, frozenset({"apt-get", "sudo"}))
FEDORA = System({"ID": "fedora"}, frozenset({"dnf", "apt-get", "sudo"}))
ROCKY = System({"ID": "rocky", "ID_LIKE": "rhel centos fedora"}, frozenset({"dnf", "sudo"}))
ARCH = System({"ID": "arch"}, frozenset({"pacman", "sudo"}))
UNKNOWN = System({}, frozenset())

WGET2 = Check("client wget2", ok=False, detail="not installed", needed=False)
CHROMIUM = Check("client chromium", ok=False, detail="not installed", needed=False)
FIREFOX = Check("client firefox", ok=False, detail="not installed", needed=False)
CURL = Check("client curl", ok=True, detail="8.0")
DRIVER = Check(
    "client chromium",
    ok=False,
    detail="156 (/usr/bin/chromium); the Python package playwright is missing",
    hint="only to load pages with chromium: pip install 'firstflight[browser]'",
)
CLIENTS = [CHROMIUM, FIREFOX, WGET2, CURL]
APPARMOR = Check(
    "namespaces",
    ok=False,
    detail="refused",
    hint="AppArmor restricts user namespaces: `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, "
    "or an AppArmor profile with `userns,` for this program",
)
TUN = Check(
    "TUN device",
    ok=False,
    detail="no such file",
    hint="`sudo modprobe tun`; in a container pass `--device /dev/net/tun`",
)
SECCOMP = Check("namespaces", ok=False, detail="", hint="start it with `--security-opt seccomp=unconfined`")


@pytest.mark.parametrize(
    ("system", "command"),
    [
        (DEBIAN, "sudo apt-get install chromium firefox-esr wget2"),
        (UBUNTU, "sudo apt-get install wget2"),
        (FEDORA, "sudo dnf install chromium firefox wget2"),
        (ROCKY, "sudo dnf install chromium firefox wget2"),
        (ARCH, "sudo pacman -S chromium firefox"),
        (UNKNOWN, ""),
        (System({}, frozenset({"pacman", "sudo"})), "sudo pacman -S chromium firefox"),
        (replace(DEBIAN, is_root=True), "apt-get install chromium firefox-esr wget2"),
        (
            replace(DEBIAN, is_root=True, has_lists=False),
            "apt-get update && apt-get install chromium firefox-esr wget2",
        ),
        (replace(DEBIAN, programs=frozenset()), "su -c 'apt-get install chromium firefox-esr wget2'"),
    ],
)
def test_missing_clients_are_one_command_of_the_systems_package_manager(system: System, command: str) -> None:
    assert one_command(CLIENTS, system) == command


@pytest.mark.parametrize(
    ("checks", "command"),
    [
        ([APPARMOR], "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"),
        ([TUN], "sudo modprobe tun"),
        (
            [APPARMOR, TUN, WGET2],
            "sudo apt-get install wget2 && sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0 && "
            "sudo modprobe tun",
        ),
        (
            [WGET2, DRIVER],
            "sudo apt-get install wget2 && pip install 'firstflight[browser]'",
        ),
        ([SECCOMP], ""),
        ([CURL], ""),
    ],
)
def test_what_the_kernel_lacks_is_enabled_in_the_same_command(checks: list[Check], command: str) -> None:
    assert one_command(checks, DEBIAN) == command


def test_nothing_of_the_kernel_is_changed_from_within_a_container() -> None:
    inside = replace(DEBIAN, is_root=True, is_container=True)
    assert one_command([APPARMOR, TUN, WGET2], inside) == "apt-get install wget2"

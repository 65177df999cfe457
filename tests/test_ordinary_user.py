"""When root runs the tests, runs those marked `ordinary_user` again as a user without rights.

That user exists only inside a mount namespace of the test, so accounts and devices of the machine stay as
they are. In the namespace:

- /mnt holds the checkout, the environment and its Python, which may all lie in root's home;
- /etc/passwd has one more entry;
- /dev/net/tun is open to all users, as most distributions make it.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from program import unavailable

PROJECT = Path(__file__).resolve().parents[1]
USER_ID = 54_321
STAGE = f"""
    set -e
    mount -t tmpfs -o mode=755 none /mnt
    mkdir /mnt/project /mnt/environment /mnt/python /mnt/home
    mount --bind "$1" /mnt/project
    mount --bind "$2" /mnt/environment
    mount --bind "$3" /mnt/python
    shift 3
    chown {USER_ID}:{USER_ID} /mnt/home
    cp /etc/passwd /mnt/passwd
    echo 'visitor:x:{USER_ID}:{USER_ID}::/mnt/home:/bin/sh' >> /mnt/passwd
    mount --bind /mnt/passwd /etc/passwd
    mount -t tmpfs -o mode=755 none /run
    mkdir -p /run/user/{USER_ID}
    chown {USER_ID}:{USER_ID} /run/user/{USER_ID}
    mount -t tmpfs -o mode=755 none /dev/net
    mknod -m 666 /dev/net/tun c 10 200
    cd /mnt/project
    exec setpriv --reuid={USER_ID} --regid={USER_ID} --clear-groups --inh-caps=-all "$@"
"""


ARGUMENTS = (
    "-q",
    "--no-header",
    "--durations=10",
    "-p",
    "no:cacheprovider",
    "-m",
    "ordinary_user",
    "--basetemp",
    "/mnt/home/t",
    "tests/e2e",
    "tests/containment",
)


def test_an_ordinary_user_has_the_same_laboratory() -> None:
    if os.geteuid() != 0:
        pytest.skip("these tests are run by an ordinary user already")
    for program in ("unshare", "setpriv"):
        if not shutil.which(program):
            unavailable(f"{program} (util-linux) is not installed")
    ended = subprocess.run(as_user("-m", "pytest", *ARGUMENTS), capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    summary = ended.stdout.splitlines()[-1]
    assert re.search(r"\d+ passed", summary), ended.stdout
    assert "skipped" not in summary, ended.stdout


def as_user(*arguments: str) -> list[str]:
    """Runs this Python as the ordinary user; it can import the same modules as here."""
    inside = Path("/mnt/environment") / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    python = Path("/mnt/python") / Path(sys.executable).resolve().relative_to(Path(sys.base_prefix).resolve())
    settings = [
        f"PYTHONPATH=/mnt/project/python:{inside}",
        # The path of libpython in the program leads to a folder that the user may not read, so this one is
        # set.
        "LD_LIBRARY_PATH=/mnt/python/lib",
        "HOME=/mnt/home",
        "TMPDIR=/mnt/home",
        "FIRSTFLIGHT_TEST_KILLS=3",
    ]
    folders = [str(PROJECT), sys.prefix, sys.base_prefix]
    stage = ["unshare", "--mount", "--propagation", "private", "sh", "-c", STAGE, "sh", *folders]
    return [*stage, "env", *settings, str(python), *arguments]

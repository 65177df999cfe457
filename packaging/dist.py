"""Builds the source archive, and a wheel from it for each target: `python packaging/dist.py [TARGET ...]`.

`make dist` calls it. Every wheel is built from the unpacked source archive, so that it contains no other
files of the working tree. Zig links against the glibc version in `GLIBC`, so that wheels also run on systems
older than the build machine. It is an error if a wheel needs a newer glibc, lacks a file or is too large.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import build_backend
import notices

GLIBC = (2, 28)
"""The oldest glibc that wheels support: Debian 10, Ubuntu 18.10, RHEL 8 and later."""

LARGEST_MB = 15.0
NATIVE = f"{platform.machine()}-unknown-linux-gnu"

_ROOT = Path(__file__).parents[1]
_OUT = _ROOT / "dist"
_WORK = _ROOT / "target/dist"
_TAG = f"manylinux_{GLIBC[0]}_{GLIBC[1]}"
NEEDED = (
    "firstflight/_core.abi3.so",
    *(f"firstflight/_bin/{name}" for name in build_backend.PROGRAMS),
    "licenses/LICENSE-MIT",
    "licenses/LICENSE-APACHE",
    "licenses/THIRD-PARTY-RUST.txt",
    "licenses/THIRD-PARTY-RUST-STD.html",
    "licenses/python/firstflight/report/templates/vega.LICENSES",
    "share/man/man1/firstflight.1",
    "share/firstflight/apparmor-profile",
)
"""The ends of the paths of files that a wheel must contain."""


def main(targets: list[str]) -> int:
    """Builds the archive and the wheels into `dist/`, and prints the size of each file."""
    if notices.of_standard_library(_ROOT) is None:
        sys.exit(
            "error: a published wheel has the licences of Rust's standard library, and this Rust lacks "
            "these (COPYRIGHT-library.html)\nhint: build with a toolchain of rustup, https://rustup.rs"
        )
    os.environ["CARGO_TARGET_DIR"] = str(_WORK)
    for old in (*_OUT.glob("firstflight-*.whl"), *_OUT.glob("firstflight-*.tar.gz")):
        old.unlink()
    subprocess.run(["maturin", "sdist", "--out", _OUT], cwd=_ROOT, check=True)
    [archive] = _OUT.glob("*.tar.gz")
    print(f"{archive.relative_to(_ROOT)}: {archive.stat().st_size / 1e6:.1f} MB")
    source = unpack(archive)
    for target in targets or [NATIVE]:
        wheel = build(source, target)
        problems = check(wheel)
        print(f"{wheel.relative_to(_ROOT)}: {wheel.stat().st_size / 1e6:.1f} MB")
        if problems:
            sys.exit("\n".join(f"error: {wheel.name}: {problem}" for problem in problems))
    return 0


def unpack(archive: Path) -> Path:
    """Unpacks the source archive. Sets all files to the current time, so that cargo compiles them again."""
    shutil.rmtree(_WORK / "source", ignore_errors=True)
    with tarfile.open(archive) as opened:
        for member in opened:
            opened.extract(member, _WORK / "source", filter="data")
    [source] = (_WORK / "source").iterdir()
    for file in source.rglob("*"):
        file.touch()
    return source


def build(source: Path, target: str) -> Path:
    """Builds the wheel of `target` from an unpacked source archive."""
    versioned = f"{target}.{GLIBC[0]}.{GLIBC[1]}"
    build_backend.prepare(source, target, ["cargo", "zigbuild", "--target", versioned])
    before = set(_OUT.glob("*.whl"))
    options = ["--quiet", "--zig", "--strip", "--target", target, "--compatibility", _TAG, "--out", str(_OUT)]
    subprocess.run(["maturin", "build", *options], cwd=source, check=True)
    [wheel] = set(_OUT.glob("*.whl")) - before
    return wheel


def check(wheel: Path) -> list[str]:
    """Lists the problems of a wheel."""
    problems = []
    if wheel.stat().st_size > LARGEST_MB * 1e6:
        problems.append(f"larger than {LARGEST_MB:g} MB")
    if not re.search(rf"-cp311-abi3-{_TAG}_\w+\.whl$", wheel.name):
        problems.append(f"its tag is not cp311-abi3-{_TAG}")
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        problems += [f"{end} is missing" for end in NEEDED if not any(name.endswith(end) for name in names)]
        for name in names:
            content = opened.read(name)
            if content.startswith(b"\x7fELF") and (needed := newest_glibc(content)) > GLIBC:
                problems.append(f"{name} needs glibc {needed[0]}.{needed[1]}")
    return problems


def newest_glibc(program: bytes) -> tuple[int, int]:
    """The newest glibc version that a program or library names, which is at least that of its symbols."""
    return max((int(major), int(minor)) for major, minor in re.findall(rb"GLIBC_(\d+)\.(\d+)", program))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

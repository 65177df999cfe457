"""The PEP 517 build backend: compiles two more binaries, writes the licence notices, then calls maturin.

maturin compiles one crate, the Python module. A wheel also has a program and a library in `_bin`, so this
backend compiles these first. That way `pip wheel` and `pip install` of a source archive give the same files
as a published wheel. A build needs cargo, and uses the network only to download crates.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import maturin  # type: ignore[import-untyped]
import notices
from maturin import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

PROFILE = "release"
STRIPPED = 'profile.release.package.firstflight-lab.strip="debuginfo"'
"""Wheels keep function names, for bug reports, but no line numbers: these would take 36 MB."""

PROGRAMS = {"firstflight-lab": 0o755, "libfirstflight_preload.so": 0o644}
"""The files in `_bin`, with their modes."""

_SETTINGS = dict[str, object] | None


def build_wheel(
    wheel_directory: str, config_settings: _SETTINGS = None, metadata_directory: str | None = None
) -> str:
    """See PEP 517."""
    prepare(Path.cwd())
    return str(maturin.build_wheel(wheel_directory, config_settings, metadata_directory))


def build_editable(
    wheel_directory: str, config_settings: _SETTINGS = None, metadata_directory: str | None = None
) -> str:
    """See PEP 660."""
    prepare(Path.cwd())
    return str(maturin.build_editable(wheel_directory, config_settings, metadata_directory))


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: _SETTINGS = None) -> str:
    """See PEP 517.

    pip calls this before it builds the wheel. The notices must exist by then, since the metadata list them.
    """
    _check_cargo()
    notices.write(Path.cwd(), os.environ.get("CARGO_BUILD_TARGET"))
    return str(maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings))


def prepare(root: Path, target: str | None = None, cargo: Sequence[str] = ("cargo", "build")) -> None:
    """Compiles the binaries that maturin does not compile, and writes the licence notices.

    Args:
        root: The source tree; programs and notices are put into it.
        target: The target triple; by default this machine's.
        cargo: The build command. It may add a glibc version to the target, as `cargo zigbuild` does.

    Raises:
        SystemExit: cargo is not on the PATH.
        CalledProcessError: cargo failed.
    """
    _check_cargo()
    crates = ["-p", "firstflight-lab", "-p", "firstflight-preload"]
    options = ["--profile", PROFILE, "--config", STRIPPED, "--locked"]
    subprocess.run([*cargo, *options, *crates], cwd=root, check=True)
    triple = target or os.environ.get("CARGO_BUILD_TARGET")
    built = Path(os.environ.get("CARGO_TARGET_DIR", root / "target")) / (triple or "") / PROFILE
    programs = root / "python/firstflight/_bin"
    programs.mkdir(exist_ok=True)
    for name, rights in PROGRAMS.items():
        # Removed and written again: the old file may be a running program, which cannot be overwritten.
        (programs / name).unlink(missing_ok=True)
        shutil.copyfile(built / name, programs / name)
        (programs / name).chmod(rights)
    notices.write(root, triple)


def _check_cargo() -> None:
    if shutil.which("cargo") is None:
        sys.exit(
            "error: firstflight: no cargo on the PATH, and a build from source needs it\n"
            "hint: pip install --only-binary firstflight firstflight, or install Rust 1.88 or later: https://rustup.rs"
        )

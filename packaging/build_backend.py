"""The build of a wheel (PEP 517): the laboratory, the preload library and the notices, then maturin.

maturin compiles one crate, the Python module. A wheel has two more files, a program and a library, in `_bin`.
This backend compiles those first and leaves the rest to maturin. So `pip wheel` and `pip install` of a source
archive give what a published wheel has. It needs cargo, and asks the network for crates only.
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
"""A wheel has the names of functions, for bug reports, and no lines: these take 36 MB."""

PROGRAMS = {"firstflight-lab": 0o755, "libfirstflight_preload.so": 0o644}
"""What lies in `_bin`, with the rights it has there."""

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
    """See PEP 517. pip asks for it before the wheel, which gets the licences that are found now."""
    _check_cargo()
    notices.write(Path.cwd(), os.environ.get("CARGO_BUILD_TARGET"))
    return str(maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings))


def prepare(root: Path, target: str | None = None, cargo: Sequence[str] = ("cargo", "build")) -> None:
    """Compiles what maturin does not, and writes the notices of all that is compiled in.

    Args:
        root: The source tree; programs and notices are put into it.
        target: The target triple; by default this machine's.
        cargo: What builds, in place of `cargo build`; it may add the version of glibc to the target.

    Raises:
        SystemExit: There is no cargo, or it failed.
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
        # A new file: the old one may be running.
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

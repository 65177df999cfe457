"""`make` names the fix if the system's Rust is too old, or if cargo or the C compiler is missing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "rust_toolchain"
PROGRAMS = ("sh", "sed", "sort", "head", "cut", "dirname")


def tried(folder: Path, *, rustc: str | None = None, others: tuple[str, ...] = ()) -> tuple[int, str]:
    """Runs the script with a PATH that has a rustc of this version and `others`, which do nothing."""
    for name in PROGRAMS:
        (folder / name).symlink_to(str(shutil.which(name)))
    scripts = dict.fromkeys(others, "")
    if rustc:
        scripts["rustc"] = f"echo 'rustc {rustc} (4b91a6ea7 2022-08-08)'"
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    environment = {**os.environ, "PATH": str(folder)}
    ended = subprocess.run([str(SCRIPT)], env=environment, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stderr


@pytest.mark.parametrize(
    ("rustc", "others", "error"),
    [
        (None, (), "error: no cargo on the PATH\n"),
        ("1.88.0", ("cargo",), "error: no C compiler (cc) on the PATH"),
        ("1.63.0", ("cargo", "cc"), "rustc is Rust 1.63.0; firstflight needs 1.88 or later\n"),
        ("1.85.0", ("cargo", "cc"), "rustc is Rust 1.85.0; firstflight needs 1.88 or later\n"),
    ],
)
def test_what_cannot_compile_is_named_with_the_fix(
    rustc: str | None, others: tuple[str, ...], error: str, tmp_path: Path
) -> None:
    code, said = tried(tmp_path, rustc=rustc, others=others)
    assert code == 1
    assert error in said
    assert said.splitlines()[1].startswith("hint: ")


@pytest.mark.parametrize("rustc", ["1.88.0", "1.100.0-nightly", "2.0.0"])
def test_what_is_new_enough_passes(rustc: str, tmp_path: Path) -> None:
    assert tried(tmp_path, rustc=rustc, others=("cargo", "cc")) == (0, "")

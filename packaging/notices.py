"""Writes the licence texts that a wheel must contain for the crates compiled into it.

`write` makes two files, which `license-files` in pyproject.toml adds to the wheel. THIRD-PARTY-RUST.txt has
each text once, with the crates that use it; the texts come from the crates' sources.
THIRD-PARTY-RUST-STD.html is for Rust's standard library; only toolchains of rustup have it. Procedural macros
and build scripts are left out, because they are not part of the binaries.

This replaces cargo-about, which takes minutes to compile. Every build from source needs the notices.
"""

import hashlib
import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TEXT = "THIRD-PARTY-RUST.txt"
STANDARD_LIBRARY = "THIRD-PARTY-RUST-STD.html"
COMPILED = ("firstflight-lab", "firstflight-preload", "firstflight-python")
"""The crates whose dependencies are in a wheel."""

_NAMED = re.compile(r"(?i)^(licen[cs]e|copying|copyright|notice|unlicense)([-_.].*)?$")
_SOURCE = re.compile(r"(?i)\.(rs|toml|go|py|pl|c|h|json)$")
_LONGEST = 200_000
_HEAD = """\
Third-party software compiled into firstflight

firstflight itself is under MIT or Apache-2.0, see LICENSE-MIT and LICENSE-APACHE. Its programs and its Python
module contain the crates below, on the terms below. They also contain Rust's standard library
(MIT or Apache-2.0; see THIRD-PARTY-RUST-STD.html where the toolchain had it) and may contain parts of LLVM's
compiler-rt and libunwind (Apache-2.0 WITH LLVM-exception). Reports contain Vega: see vega.LICENSES.
"""


def write(root: Path, target: str | None = None) -> None:
    """Writes both files into `root`.

    Args:
        root: The source tree.
        target: The target triple; by default this machine's.

    Raises:
        SystemExit: A crate has no licence text, and no standard text can take its place.
    """
    (root / TEXT).write_text(collect(root, target), "utf-8")
    if found := of_standard_library(root):
        shutil.copyfile(found, root / STANDARD_LIBRARY)


def of_standard_library(root: Path) -> Path | None:
    """The licence file of the standard library in the Rust that compiles `root`; `None` if it has none."""
    sysroot = _said(root, "rustc", "--print", "sysroot").strip()
    return next(Path(sysroot).glob("share/doc/rust*/COPYRIGHT-library.html"), None)


def collect(root: Path, target: str | None = None) -> str:
    """The text of THIRD-PARTY-RUST.txt."""
    packages = compiled_in(root, target)
    texts: dict[str, str] = {}
    holders: defaultdict[str, list[str]] = defaultdict(list)
    for package in packages:
        name = f"{package['name']} {package['version']}"
        for text in _texts(package, root):
            key = hashlib.sha256(" ".join(text.split()).encode()).hexdigest()
            texts.setdefault(key, text.strip("\n"))
            if name not in holders[key]:
                holders[key].append(name)
    listed = [_line(package) for package in packages]
    blocks = (f"{'=' * 110}\n{', '.join(holders[key])}\n{'-' * 110}\n{text}\n" for key, text in texts.items())
    return "\n".join([_HEAD, *listed, "", *blocks])


def compiled_in(root: Path, target: str | None = None) -> list[dict[str, Any]]:
    """The third-party packages that are compiled in, as `cargo metadata` describes them, sorted by name."""
    target = target or re.search(r"host: (\S+)", _said(root, "rustc", "-vV"))[1]  # type: ignore[index]
    command = ("cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={target}")
    metadata = json.loads(_said(root, *command))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    seen = {name for name, package in packages.items() if package["name"] in COMPILED}
    waiting = list(seen)
    while waiting:
        for needed in nodes[waiting.pop()]["deps"]:
            is_linked = any(kind["kind"] is None for kind in needed["dep_kinds"])
            if is_linked and needed["pkg"] not in seen and not _only_builds(packages[needed["pkg"]]):
                seen.add(needed["pkg"])
                waiting.append(needed["pkg"])
    others = [packages[name] for name in seen if packages[name]["source"]]
    return sorted(others, key=lambda package: (package["name"], package["version"]))


def _only_builds(package: dict[str, Any]) -> bool:
    return any("proc-macro" in target["kind"] for target in package["targets"])


def _line(package: dict[str, Any]) -> str:
    where = package["repository"] or package["homepage"] or f"https://crates.io/crates/{package['name']}"
    return f"{package['name']} {package['version']}: {package['license'] or 'see below'} ({where})"


def _texts(package: dict[str, Any], root: Path) -> Iterator[str]:
    folder = Path(package["manifest_path"]).parent
    files = [file for file in sorted(folder.rglob("*")) if _is_licence(file)]
    if files:
        yield from (file.read_text("utf-8", "replace") for file in files)
    elif "Apache-2.0" in (package["license"] or ""):
        # The Apache licence names no copyright holder, so our copy of the text serves for every crate.
        yield (root / "LICENSE-APACHE").read_text("utf-8")
    elif "MIT" in (package["license"] or "") and package["authors"]:
        _, terms = (root / "LICENSE-MIT").read_text("utf-8").split("\n\nPermission", 1)
        yield f"MIT License\n\nCopyright (c) {', '.join(package['authors'])}\n\nPermission{terms}"
    else:
        raise SystemExit(f"error: the crate {package['name']} {package['version']} has no licence's text")


def _is_licence(file: Path) -> bool:
    return (
        bool(_NAMED.match(file.name))
        and not _SOURCE.search(file.name)
        and file.is_file()
        and file.stat().st_size <= _LONGEST
    )


def _said(root: Path, *command: str) -> str:
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout

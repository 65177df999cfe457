"""The code imports what `pyproject.toml` declares; a lock pins one version of each package, with its hash."""

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
OURS = {
    "firstflight",
    "studies",
    *(file.stem for folder in ("packaging", "tests", "scripts") for file in (ROOT / folder).rglob("*.py")),
}
NEWER = {"compression"}
"""Standard library modules that exist only in newer versions of Python than this one may be."""

PROGRAMS = {"cargo-zigbuild", "ipykernel", "maturin", "mypy", "pytest", "ruff", "zensical", "ziglang"}
"""Distributions that no code imports: programs, and modules that such a program loads."""

RUNTIME = PROJECT["project"]["dependencies"]
EXTRAS = [one for several in PROJECT["project"]["optional-dependencies"].values() for one in several]
GROUPS = [one for several in PROJECT["dependency-groups"].values() for one in several]
LOCKS = ("requirements.lock", "requirements-docs.lock", "requirements-dist.lock", "requirements-uv.lock")


def names(requirements: Iterable[str]) -> set[str]:
    return {normal(re.split(r"[\[<>=!~; ]", requirement)[0]) for requirement in requirements}


def normal(name: str) -> str:
    """The name of a distribution as the index compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(*folders: str) -> set[str]:
    """The distributions that the code of these folders imports."""
    installed = packages_distributions()
    modules = {
        module.split(".")[0]
        for folder in folders
        for file in (ROOT / folder).rglob("*.py")
        for module in modules_of(ast.parse(file.read_text()))
    }
    foreign = modules - set(sys.stdlib_module_names) - NEWER - OURS
    return {normal(name) for module in foreign for name in installed.get(module, [module])}


def modules_of(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            yield node.module


def test_the_package_imports_what_it_declares_and_declares_what_it_imports() -> None:
    found = imported("python/firstflight")
    assert found - names([*RUNTIME, *EXTRAS]) == set()
    assert names(RUNTIME) - found == set()


def test_tests_scripts_and_studies_import_only_what_is_declared() -> None:
    found = imported("packaging", "tests", "scripts", "studies")
    assert found - names([*RUNTIME, *EXTRAS, *GROUPS]) == set()
    assert names(GROUPS) - found - PROGRAMS == set()


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_one_version_of_each_package_for_every_python_and_names_its_hashes(lock: str) -> None:
    text = (ROOT / lock).read_text()
    pins = re.findall(r"^([\w.-]+)==(\S+)[^\n]*?(\\?)\n", text, re.MULTILINE)
    assert pins
    assert [name for name, count in Counter(name for name, _, _ in pins).items() if count > 1] == []
    assert [name for name, _, more in pins if not more] == []


def test_the_makefile_installs_nothing_without_its_hash() -> None:
    lines = (ROOT / "Makefile").read_text().splitlines()
    installs = [line.strip() for line in lines if re.search(r"\bpip (install|sync)\b", line)]
    assert installs
    assert [line for line in installs if "--require-hashes" not in line] == []


@pytest.mark.parametrize("target", ["lint", "test", "audit", "advisories"])
def test_no_check_of_the_makefile_is_left_out_where_a_program_is_missing(target: str) -> None:
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None, f"no target {target}"
    assert not re.search(r"\bif\b|\|\||command -v|^\t-", recipe[1], re.MULTILINE)

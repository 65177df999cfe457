"""Which package may import which. No modules may import each other in a circle."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import firstflight

ROOT = Path(firstflight.__file__).parent
LEAVES = {"_core", "deferred", "errors", "observer", "text"}
"""Modules that import no other module of firstflight; every module may import them."""

MAY_IMPORT = {
    "model": set(),
    "results": {"model"},
    "published": set(),
    "pages": {"model", "results", "engines"},
    "engines": {"model", "pages", "results"},
    "analysis": {"model", "published", "results"},
    "experiment": {"analysis", "engines", "model", "pages", "published", "results"},
    "course": {"analysis", "model", "pages", "results"},
    "stress": {"analysis", "engines", "experiment", "model", "results"},
    "gate": {"analysis", "engines", "experiment", "model", "pages", "results"},
    "report": {"analysis", "course", "engines", "gate", "model", "published", "results", "stress"},
}
"""By package, the packages that it may import.

`cli` and `api` may import all; none may import `cli` or `api`.

Recording drives engines, so it may import them.
"""


def modules() -> dict[str, ast.Module]:
    names = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in ROOT.rglob("*.py")}
    return {name.removesuffix(".__init__"): ast.parse(path.read_text()) for path, name in names.items()}


def imported(tree: ast.Module, known: set[str]) -> Iterator[str]:
    """The modules of firstflight that a module imports, anywhere in its code, also for type checking only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("firstflight."):
            module = (node.module or "").removeprefix("firstflight.")
            for name in node.names:
                yield f"{module}.{name.name}" if f"{module}.{name.name}" in known else module


MODULES = modules()


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_package_imports_only_those_below_it(package: str) -> None:
    of_package = {name: tree for name, tree in MODULES.items() if name.split(".")[0] == package}
    assert of_package
    found = {other.split(".")[0] for tree in of_package.values() for other in imported(tree, set(MODULES))}
    assert found - {package} - LEAVES <= MAY_IMPORT[package]


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {name: set(imported(tree, set(MODULES))) - {name} for name, tree in MODULES.items()}
    graph.pop("__init__")
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(error.args[1]))


def test_imports_stand_at_the_top_of_modules() -> None:
    """Imports of an extra are excepted, because it may not be installed."""
    inside = {
        (node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name).partition(".")[0]
        for tree in MODULES.values()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert inside == {"distributed"}


def test_analysis_writes_nothing() -> None:
    writers = {
        "write_whole",
        "write_tables",
        "write_text",
        "write_bytes",
        "write_parquet",
        "sink_parquet",
        "open",
    }
    called = {
        (name, node.func.id if isinstance(node.func, ast.Name) else node.func.attr)
        for name, tree in MODULES.items()
        if name.startswith("analysis")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    }
    assert not {(name, call) for name, call in called if call in writers}

"""The example notebook, run cell by cell in a fresh kernel."""

import shutil
from ast import literal_eval
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from firstflight.engines.emulate import Emulator

EXAMPLES = Path(__file__).parents[2] / "examples"
NAME = "first_round_trip.ipynb"


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_example_notebook_runs_and_shows_that_tfo_saves_round_trips(
    emulator: Emulator, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(EXAMPLES / "notebook", tmp_path / "notebook"))
    shutil.copy(EXAMPLES / "chain.json", tmp_path)
    notebook = nbformat.read(folder / NAME, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}}
    ).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)
    tcp_ms, tfo_ms = literal_eval(next(_text(cell) for cell in cells if "tcp.plt_ms" in cell.source))
    assert tcp_ms - tfo_ms > 3 * 100, "four hosts, each a round trip of 100 ms sooner, with room for one"
    assert sum("image/png" in _kinds(cell) or "text/html" in _kinds(cell) for cell in cells) >= 4


def test_the_example_notebook_is_committed_without_outputs() -> None:
    notebook = nbformat.read(EXAMPLES / "notebook" / NAME, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells)


def _text(cell: nbformat.NotebookNode) -> str:
    return str(cell.outputs[0]["data"]["text/plain"])


def _kinds(cell: nbformat.NotebookNode) -> set[str]:
    return {kind for output in cell.outputs for kind in output.get("data", {})}

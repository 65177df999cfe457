"""The tables behind studies/paper/README.md: the paper's, a run's, the simulator's, and how far they are."""

from pathlib import Path

import pytest
from paper_tables import PAPER, Cell, distance, measured, simulated
from synthetic_results import write_results

from firstflight.experiment.plan_file import resolve
from firstflight.pages import open_pages


def test_the_paper_is_at_no_distance_from_itself() -> None:
    found = distance(PAPER)
    assert (found.cells, found.same_sign, found.size, found.mean) == (12, 12, 0.0, 0.0)
    assert (found.rank, found.plt_ratio) == (pytest.approx(1), pytest.approx(1))


def test_a_table_that_is_larger_in_every_cell_has_its_order_and_its_distance() -> None:
    found = distance({key: Cell(2 * cell.tcp_ms, cell.improvement + 0.1) for key, cell in PAPER.items()})
    assert (found.size, found.mean, found.rank) == (pytest.approx(0.1), pytest.approx(0.1), pytest.approx(1))
    assert found.plt_ratio == pytest.approx(2)


def test_simulated_cells_are_medians_of_the_plans_and_measured_ones_of_the_folder(tmp_path: Path) -> None:
    [wikipedia] = open_pages(["wikipedia"])
    plan = resolve({"rtt": [20, 200], "pages": ["wikipedia"], "repeats": 3})
    table = simulated(plan, {"wikipedia": wikipedia})
    assert [rtt_ms for _, rtt_ms in table] == [20, 200]
    assert 0 < table["wikipedia", 20].improvement < table["wikipedia", 200].improvement < 1
    ours = measured(write_results(tmp_path / "run", blocks=6), {"wikipedia": wikipedia})
    assert ours and all(cell.low is not None and cell.tcp_ms > 0 for cell in ours.values())

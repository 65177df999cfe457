"""Predictions of the grid by three models: simulator, Lantern's rounds, one RTT per cold connection."""

import csv
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from accuracy_baseline import Measured
from accuracy_grid import MODES, Condition
from baselines import lantern_plt_ms

from firstflight.analysis.critical_path.walk import critical_path
from firstflight.engines.engine import Record
from firstflight.engines.simulate import Simulator
from firstflight.pages import LoadedPage
from firstflight.results.records import plt_ms

PREDICTED = Path(__file__).with_name("accuracy_predicted.tsv")
SEEDS = 31
"""Simulated loads of a cell on a path with loss. Without loss one is enough, since nothing is random."""


@dataclass(frozen=True)
class Predicted:
    """The predictions for a condition by every model, PLT in ms.

    The naive model starts from the measured load without TFO. `again` is the simulator with other seeds and
    as few loads as were measured. A kernel that the simulator models perfectly would measure that. The
    difference between `again` and `simulated` is therefore due to chance.
    """

    number: int
    simulated_tcp_ms: float
    simulated_tfo_ms: float
    again_tcp_ms: float
    again_tfo_ms: float
    lantern_tcp_ms: float
    lantern_tfo_ms: float
    naive_tfo_ms: float


def predict(condition: Condition, page: LoadedPage, measured: Measured, simulator: Simulator) -> Predicted:
    """Predicts one condition with every model."""

    def load(mode: str, seed: int) -> Record:
        return simulator.load(condition.planned(mode, seed, "simulate"), page)

    def median_ms(mode: str, seeds: Iterable[int]) -> float:
        return statistics.median(plt_ms(load(mode, seed)) for seed in seeds)

    is_certain = condition.path.loss == 0
    simulated = [median_ms(mode, range(1 if is_certain else SEEDS)) for mode in MODES]
    other_seeds = range(SEEDS, SEEDS + measured.n)
    again = simulated if is_certain else [median_ms(mode, other_seeds) for mode in MODES]
    saved_ms = critical_path(load("tcp", 0), page.page).could_save_rtts_ms
    lantern = {
        mode: lantern_plt_ms(page.page, condition.path, mode, keep_alive=condition.keep_alive)
        for mode in MODES
    }
    figures = (*simulated, *again, lantern["tcp"], lantern["tfo"], measured.tcp_ms - saved_ms)
    return Predicted(condition.number, *(round(value, 2) for value in figures))


def write(file: Path, rows: Iterable[Predicted]) -> None:
    """Writes the predictions."""
    with file.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out, delimiter="\t", lineterminator="\n")
        table.writerow(field.name for field in fields(Predicted))
        table.writerows(asdict(row).values() for row in rows)


def read(file: Path = PREDICTED) -> list[Predicted]:
    """Reads the predictions back."""
    with file.open(newline="", encoding="utf-8") as lines:
        rows = csv.reader(lines, delimiter="\t")
        next(rows)
        return [Predicted(int(number), *map(float, figures)) for number, *figures in rows]

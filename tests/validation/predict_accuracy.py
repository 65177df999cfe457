"""Predicts every condition of the grid with every model, and writes the predictions next to the baseline.

    python tests/validation/predict_accuracy.py

This takes two minutes. The diff of `accuracy_predicted.tsv`, `load_by_load.tsv` and docs/accuracy.md shows
the effect of a change of a model.
"""

import sys
from collections.abc import Iterable, Iterator

import load_by_load
from accuracy_baseline import read as read_measured
from accuracy_grid import Condition, measured_pages, open_page
from accuracy_grid import conditions as grid
from accuracy_models import PREDICTED, Predicted, predict, write
from accuracy_table import DOCUMENT, STATED, document, stated

from firstflight.engines.simulate import Simulator


def main() -> int:
    """Writes the predictions, the document, and the error that simulated results report."""
    write(PREDICTED, predictions(measured_conditions()))
    load_by_load.write(load_by_load.simulated_again(load_by_load.read_loads()))
    text = document(DOCUMENT.read_text(encoding="utf-8"))
    DOCUMENT.write_text(load_by_load.document(text), encoding="utf-8")
    STATED.write_text(stated(), encoding="utf-8")
    return 0


def predictions(conditions: Iterable[Condition]) -> Iterator[Predicted]:
    """The predictions of every model for these measured conditions, in order."""
    measured = {row.number: row for row in read_measured()}
    simulator = Simulator()
    for condition in conditions:
        loaded = open_page(condition.page)
        yield predict(condition, loaded, measured[condition.number], simulator)


def measured_conditions() -> list[Condition]:
    """The conditions of the baseline, with the pages that it names."""
    numbers = {row.number for row in read_measured()}
    return [condition for condition in grid(measured_pages()) if condition.number in numbers]


if __name__ == "__main__":
    sys.exit(main())

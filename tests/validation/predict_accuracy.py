"""Predicts every condition of the grid by every model and writes what comes of it beside the baseline.

    python tests/validation/predict_accuracy.py CORPUS

Takes a minute. A change of a model shows in the diff of `accuracy_predicted.tsv` and of docs/accuracy.md.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from accuracy_baseline import read as read_measured
from accuracy_grid import Condition, open_page
from accuracy_grid import conditions as grid
from accuracy_models import PREDICTED, Predicted, predict, write
from accuracy_table import DOCUMENT, STATED, document, stated

from firstflight.engines.simulate import Simulator
from firstflight.model.plan import PAPER_PAGES


def main(corpus: Path) -> int:
    """Writes the predictions, the document, and what simulated results say of their error."""
    write(PREDICTED, predictions(corpus, measured_conditions()))
    DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    STATED.write_text(stated(), encoding="utf-8")
    return 0


def predictions(corpus: Path, conditions: Iterable[Condition]) -> Iterator[Predicted]:
    """Measured conditions by every model, in order."""
    measured = {row.number: row for row in read_measured()}
    simulator = Simulator()
    for condition in conditions:
        loaded = open_page(condition.page, corpus)
        yield predict(condition, loaded, measured[condition.number], simulator)


def measured_conditions() -> list[Condition]:
    """The conditions of the baseline, which names their pages."""
    pages = {row.number: row.page for row in read_measured()}
    recordings = sorted(set(pages.values()) - set(PAPER_PAGES))
    return [condition for condition in grid(recordings) if condition.number in pages]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

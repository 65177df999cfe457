"""The figures of docs/accuracy.md, made from the committed baseline and predictions."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import polars as pl
from accuracy import Accuracy, accuracy, compare
from accuracy_baseline import Measured
from accuracy_baseline import read as read_measured
from accuracy_models import Predicted
from accuracy_models import read as read_predicted

import firstflight.analysis
from firstflight.analysis.warnings import SIMULATED_ERROR

STATED = Path(firstflight.analysis.__file__).parent / SIMULATED_ERROR
DOCUMENT = Path(__file__).parents[2] / "docs" / "accuracy.md"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"
"""The markers between which this program replaces the text of the document."""

MODELS = ("simulated", "lantern", "naive")
CHANCE = "chance alone"
"""The simulator compared with itself: other seeds, and as few loads as were measured."""
WORST = 10

Rows = Sequence[tuple[Measured, Predicted]]


def pairs() -> list[tuple[Measured, Predicted]]:
    """The conditions that are both measured and predicted."""
    predicted = {row.number: row for row in read_predicted()}
    return [(row, predicted[row.number]) for row in read_measured() if row.number in predicted]


def figures(model: str, rows: Rows) -> Accuracy:
    """The error figures of one model over these conditions."""
    return accuracy(_predicted(model, rows), _measured(rows), on=["number"])


def stated() -> str:
    """The contents of `STATED`: the simulator's error, which every simulated result reports."""
    rows = pairs()
    found = figures("simulated", rows)
    error = {
        "conditions": len(rows),
        "plt_error_median": round(found.plt_error_median, 4),
        "plt_error_p95": round(found.plt_error_p95, 4),
        "improvement_error_pp": round(found.improvement_error_median_pp, 2),
    }
    return json.dumps(error, indent=2) + "\n"


def document(text: str) -> str:
    """The document with new figures."""
    return replace_between(text, BEGIN, END, _tables())


def replace_between(text: str, begin: str, end: str, lines: Iterable[str]) -> str:
    """Replaces the lines between two markers of a text."""
    head, _, rest = text.partition(begin)
    return head + begin + "\n" + "\n".join(lines) + "\n" + end + rest.partition(end)[2]


def _tables() -> list[str]:
    rows = pairs()
    chosen: dict[str, Callable[[Measured], bool]] = {
        "all": lambda _: True,
        "no loss": lambda row: row.loss == 0,
        "0.5 % loss": lambda row: row.loss == 0.005,
        "2 % loss": lambda row: row.loss == 0.02,
    }
    lines = [
        "| conditions | model | cells | PLT error, median | p95 | rank correlation "
        "| improvement error, median | same sign |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, test in chosen.items():
        some = [row for row in rows if test(row[0])]
        lines += [_line(name, model, figures(model, some)) for model in MODELS]
        lines += [_chance(name, some)] * any(row.loss for row, _ in some)
    worst = compare(_predicted("simulated", rows), _measured(rows), on=["number"]).head(WORST)
    by_number = {row.number: row for row, _ in rows}
    lines += ["", f"The {WORST} conditions that the simulator gets most wrong:", ""]
    lines += [
        "| page | path | servers | measured tcp, tfo, s | simulated tcp, tfo, s |",
        "|---|---|---|---|---|",
    ]
    return [*lines, *(_worst(by_number[cell["number"]], cell) for cell in worst.to_dicts())]


def _line(conditions: str, model: str, found: Accuracy, *, signs: bool = True) -> str:
    plt = (
        ("-", "-", "-")
        if model == "naive"
        else (
            _percent(found.plt_error_median),
            _percent(found.plt_error_p95),
            _correlation(found.plt_spearman),
        )
    )
    has_signs = signs and found.sign_agreement is not None
    sign = f"{_percent(found.sign_agreement or 0)} of {found.clear_cells}" if has_signs else "-"
    change = f"{found.improvement_error_median_pp:.2f} points"
    return f"| {' | '.join([conditions, model, str(2 * found.cells), *plt, change, sign])} |"


def _chance(conditions: str, rows: Rows) -> str:
    again = pl.DataFrame(
        {"number": row.number, "tcp_ms": row.again_tcp_ms, "tfo_ms": row.again_tfo_ms} for _, row in rows
    )
    return _line(
        conditions, CHANCE, accuracy(_predicted("simulated", rows), again, on=["number"]), signs=False
    )


def _worst(row: Measured, cell: dict[str, float]) -> str:
    path = f"{row.rtt_ms:g} ms, {row.down_bps / 1e6:g} Mbit/s, loss {row.loss:.1%}, {row.topology}"
    measured = f"{row.tcp_ms / 1000:.2f}, {row.tfo_ms / 1000:.2f}"
    predicted = f"{cell['tcp_ms_predicted'] / 1000:.2f}, {cell['tfo_ms_predicted'] / 1000:.2f}"
    return (
        f"| {row.page} | {path} | {'keep-alive' if row.keep_alive else 'close'} | {measured} | {predicted} |"
    )


def _measured(rows: Rows) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "number": row.number,
            "tcp_ms": row.tcp_ms,
            "tfo_ms": row.tfo_ms,
            "improvement_low": row.low,
            "improvement_high": row.high,
        }
        for row, _ in rows
    )


def _predicted(model: str, rows: Rows) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "number": row.number,
            "tcp_ms": row.tcp_ms if model == "naive" else getattr(predicted, f"{model}_tcp_ms"),
            "tfo_ms": getattr(predicted, f"{model}_tfo_ms"),
        }
        for row, predicted in rows
    )


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"


def _correlation(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"

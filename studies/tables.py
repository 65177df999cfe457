"""What all studies share: tables as CSV and Markdown, figures.

The only module here that knows more of firstflight than its public API: the style of figures.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import vl_convert

import firstflight as ff
from firstflight.report.figures import theme

Frames = Mapping[str, pl.DataFrame]
"""The tables of a study by their file names: times in ms, improvements and shares as fractions."""

Columns = Mapping[str, str]
"""The columns of a table in the document: heading, and a format of the CSV's columns: `{gain:+.1%}`."""

COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a94a0"]
"""After Okabe and Ito, as in the figures of reports."""

_DIGITS = 6
_TABLE = re.compile(r"<!-- (\w+\.csv) -->\n\n?((?:\|.*\n)*)")


@dataclass(frozen=True)
class Figure:
    """A figure: a chart of the data named `rows`, and these rows."""

    chart: alt.TopLevelMixin
    rows: Sequence[Mapping[str, Any]]

    def write(self, file: Path) -> None:
        """Draws it as SVG."""
        spec = theme.styled(self.chart.to_dict(validate=False), {"rows": self.rows})
        file.write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")


@dataclass(frozen=True)
class Study:
    """A study: how its tables are made, and how its document shows them.

    Attributes:
        folder: Where its README.md, its plan, its tables and its figure are.
        measure: Makes the tables. Its argument is those of the command line: results folders, or recordings.
        columns: How the document shows each table; tables that are left out it does not show.
        draw: Makes the figure of the tables.
    """

    folder: Path
    measure: Callable[[Sequence[str]], Frames]
    columns: Mapping[str, Columns]
    draw: Callable[[Frames], Figure] | None = None

    def main(self) -> int:
        """Measures, then writes the tables, the document's tables and the figure."""
        name = self.folder.name
        for file, frame in self.measure(sys.argv[1:]).items():
            frame.with_columns(pl.selectors.float().round(_DIGITS)).write_csv(self.folder / file)
        (self.folder / "README.md").write_text(self.document(), encoding="utf-8")
        if self.draw:
            self.draw(self.tables()).write(self.folder / f"{name.replace('_', '-')}.svg")
        return 0

    def tables(self) -> Frames:
        """The tables as they are stored."""
        return {file.name: _read(file) for file in sorted(self.folder.glob("*.csv"))}

    def document(self) -> str:
        """The text of README.md: each table after a line `<!-- NAME.csv -->` is as that file has it."""
        tables = self.tables()

        def table(found: re.Match[str]) -> str:
            return f"<!-- {found[1]} -->\n\n{markdown(tables[found[1]], self.columns[found[1]])}"

        return _TABLE.sub(table, (self.folder / "README.md").read_text(encoding="utf-8"))


def by_treatment(
    loads: pl.DataFrame, *values: pl.Expr, by: Sequence[str] = ("page", "rtt_ms")
) -> pl.DataFrame:
    """A row for each page and path, a column `VALUE_TREATMENT` for each value and treatment.

    Args:
        loads: `Results.loads`.
        values: Aggregates over the loads of a cell, each with a name; by default the median PLT, `plt_ms`.
        by: What makes a cell.
    """
    wanted = values or (pl.col("plt_ms").median(),)
    cells = loads.group_by(*by, "treatment", maintain_order=True).agg(*wanted)
    names = [name for name in cells.columns if name not in (*by, "treatment")]
    wide = cells.pivot("treatment", index=list(by), values=names)
    if len(names) == 1:
        treatments = [name for name in wide.columns if name not in by]
        return wide.rename({name: f"{names[0]}_{name}" for name in treatments})
    return wide


def gain(baseline: str, treatment: str) -> pl.Expr:
    """The improvement of one column of times against another, a fraction."""
    return (pl.col(baseline) - pl.col(treatment)) / pl.col(baseline)


def measured(stored: Path, folders: Sequence[str], simulated: pl.DataFrame) -> pl.DataFrame:
    """A row per cell of the real kernel, the improvement that the simulator gives with it.

    Args:
        stored: The table of an earlier run, which is kept if there are no new results.
        folders: Results folders.
        simulated: `page`, `rtt_ms` and `gain` of every cell.
    """
    cell = ("page", "rtt_ms")
    medians = {"tcp_s": pl.col("baseline_ms") / 1000, "tfo_s": pl.col("treatment_ms") / 1000}
    columns = [pl.col(*cell, "n", "improvement", "low", "high")]
    found = [
        ff.open_results(folder).cells.filter(proved=True).select(*columns, **medians) for folder in folders
    ]
    kernel = pl.concat(found).sort(cell) if found else pl.read_csv(stored).drop("simulated", strict=False)
    return kernel.join(simulated.select(*cell, simulated="gain"), on=cell, how="left", maintain_order="left")


def markdown(frame: pl.DataFrame, columns: Columns) -> str:
    """A table in Markdown: text to the left, numbers to the right."""
    rows = [[shown(value, row) for value in columns.values()] for row in frame.iter_rows(named=True)]
    text = {name for name, kind in frame.schema.items() if kind == pl.String}
    rules = ["---" if value.strip("`{}") in text else "---:" for value in columns.values()]
    lines = (f"| {' | '.join(cells)} |\n" for cells in (list(columns), *rows))
    head, *body = lines
    return f"{head}|{'|'.join(rules)}|\n{''.join(body)}"


def fields(value: str) -> list[str]:
    """The columns that a format names."""
    return re.findall(r"\{(\w+)", value)


def shown(value: str, row: Mapping[str, Any]) -> str:
    """A row in a format, as people write numbers: a minus sign, a blank before the percent sign.

    A value that is missing is a dash.
    """
    if any(row[name] is None for name in fields(value)):
        return "\N{EN DASH}"
    text = re.sub(r"(?<=\d)%", " %", value.format_map(row))
    unsigned = re.sub(r"(?<![\w.])[+-](?=0(?:\.0+)?(?![\d.]))", "", text)
    return re.sub(r"(?<![\w.])-(?=\d)", "\N{MINUS SIGN}", unsigned)


def zero_line() -> Any:  # noqa: ANN401
    """A line at an improvement of 0."""
    return alt.Chart().mark_rule(color=theme.INK, strokeWidth=1).encode(y=alt.datum(0))


def panels(
    layers: Any,  # noqa: ANN401
    rows: Sequence[Mapping[str, Any]],
    by: str,
    *title: str,
    columns: int | None = None,
    down: str | None = None,
    order: Sequence[str] | None = None,
    axes: str = "x",
    scales: str = "",
) -> Figure:
    """A figure with a panel per value of a column, or of two.

    Args:
        layers: The chart of each panel.
        rows: The data.
        by: The column whose values have a panel each, side by side.
        title: What the figure shows, and in further lines how that was measured.
        columns: Most panels side by side; more are below. Not with `down`.
        down: The column whose values have a row of panels each.
        order: The values of `by`; those of `rows` in their order by default.
        axes: What of `x` and `y` each panel draws for itself.
        scales: What of `x` and `y` each panel has a scale of its own for.
    """
    across = alt.Facet(f"{by}:N", title=None, sort=order)
    place: dict[str, Any] = {"facet": across, "columns": columns}
    if down:
        place = {"column": across, "row": alt.Row(f"{down}:N", title=None, sort=None)}
    heading = theme.title(title[0], list(title[1:]))
    chart = layers.facet(**place, data=alt.NamedData("rows"), title=heading)
    own_axes, own_scales = (dict.fromkeys(channels, "independent") for channels in (axes, scales))
    return Figure(chart.resolve_axis(**own_axes).resolve_scale(**own_scales), rows)


def _read(file: Path) -> pl.DataFrame:
    """A table; text that is missing is empty, and a column without a value has none, whatever its type."""
    frame = pl.read_csv(file)
    text = [name for name in frame.select(pl.selectors.string()).columns if frame[name].count()]
    return frame.with_columns(pl.col(text).fill_null(""))

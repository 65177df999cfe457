"""`firstflight compare`: two results, or a result and a published table."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from firstflight.analysis.compare import Comparison, Pair, compare, open_side
from firstflight.cli.console import data_console
from firstflight.cli.talk import show_json
from firstflight.published import published_names
from firstflight.report.console import print_comparison
from firstflight.report.figures.agreement import agreement
from firstflight.report.figures.draw import save_figure


def complete_side(incomplete: str) -> list[str]:
    """Completes names of published tables; if none matches, the shell completes files."""
    return [name for name in published_names() if name.startswith(incomplete)]


def command(
    a: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="Results folder, or a published table: paper, purdue-1, ...",
            autocompletion=complete_side,
        ),
    ],
    b: Annotated[
        str, typer.Argument(metavar="B", help="The result to compare with A.", autocompletion=complete_side)
    ],
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw a figure: .svg, .png, .pdf or .html.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Compare two results, or a result with a published table."""
    found = compare(open_side(a), open_side(b))
    if figure:
        save_figure(agreement(found), figure)
    if as_json:
        show_json(_document(found))
        return 0
    print_comparison(found, data_console())
    return 0


def _document(found: Comparison) -> dict[str, object]:
    return {
        "a": found.a.name,
        "b": found.b.name,
        "captions": {"a": found.a.caption, "b": found.b.caption},
        "setup": [dict(zip(("name", "a", "b"), row, strict=True)) for row in found.setup],
        "cells": [_pair(pair) for pair in found.pairs],
        "only_a": found.only_a,
        "only_b": found.only_b,
        "same_sign": found.same_sign,
        "median_difference": found.median_difference,
        "mean_difference": found.mean_difference,
        "rank_correlation": found.rank_correlation,
        "plt_rank_correlation": found.plt_rank_correlation,
    }


def _pair(pair: Pair) -> dict[str, object]:
    low, high = pair.interval or (None, None)
    sides = {
        name: {k: v for k, v in asdict(cell).items() if k != "key"}
        for name, cell in (("a", pair.a), ("b", pair.b))
    }
    difference = {"point": pair.difference, "low": low, "high": high}
    return {
        **pair.key,
        **sides,
        "difference": difference,
        "p_adjusted": pair.p_adjusted,
        "verdict": pair.verdict,
    }

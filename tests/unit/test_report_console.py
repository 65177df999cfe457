import io
from typing import Any

from rich.console import Console
from synthetic_results import failed_record, load_record

from firstflight.analysis import cell_pairs, summarize_pairs
from firstflight.report.console import print_summary
from firstflight.results import LoadRecord


def shown(records: list[LoadRecord], *, width: int = 100, force_terminal: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=force_terminal)
    print_summary(summarize_pairs(cell_pairs(records)), console)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def loads(**changes: Any) -> list[LoadRecord]:  # noqa: ANN401
    return [load_record(mode=mode, block=n, **changes) for n in range(10) for mode in ("tcp", "tfo")]


def words(text: str) -> str:
    return " ".join(text.split())


def test_a_row_has_medians_spread_signed_improvement_verdict_and_proof() -> None:
    found = words(shown(loads()))
    for part in (
        "wikipedia",
        "100 ms",
        "2.53 s",
        "2.23 s",
        "+11.7 %",
        "+11.5 to +11.9",
        "faster",
        "220 of 220",
    ):
        assert part in found


def test_a_row_has_what_tcp_against_tcp_prints() -> None:
    records = [
        load_record(mode=mode, block=n, plt_ms=1000.0 + 40 * (n % 2) - 200 * (mode == "tfo"))
        for n in range(10)
        for mode in ("tcp", "tfo")
    ]
    found = words(shown(records))
    assert "tcp on tcp" in found
    assert "+19.6 % \N{MINUS SIGN}4.0 % faster" in found


def test_a_slower_page_has_a_real_minus_sign() -> None:
    records = [
        load_record(mode=m, block=n, plt_ms=p + n)
        for n in range(10)
        for m, p in (("tcp", 1000.0), ("tfo", 1031.0))
    ]
    found = shown(records)
    assert "\N{MINUS SIGN}3.1 %" in found
    assert "slower" in found


def test_the_table_fits_100_columns_and_needs_no_colour() -> None:
    found = shown([*loads(), failed_record(block=10)])
    assert max(map(len, found.splitlines())) <= 100
    assert "\x1b" not in found


def test_warnings_stand_below_the_table_each_with_a_hint() -> None:
    found = words(shown([*loads(), failed_record(block=10)]))
    assert found.index("faster") < found.index("warning: failed loads: 1 load failed")
    assert "hint: fix the cause" in found


def test_a_result_without_proof_says_so_in_its_row() -> None:
    found = words(
        shown([{**record, "connections": []} for record in loads(tfo_offered=0, tfo_accepted=0)]).split(
            "warning:"
        )[0]
    )
    assert "not proved 0 of 220" in found
    assert "faster" not in found


def test_a_single_block_has_no_interval_and_no_verdict() -> None:
    found = words(shown([load_record(mode=mode) for mode in ("tcp", "tfo")]))
    assert "1 paired block per row" in found
    assert "too few" in found
    assert "(6 needed)" in found
    assert " to +" not in found


def test_one_mode_alone_shows_dashes() -> None:
    found = shown([load_record(mode="tcp", block=n) for n in range(5)])
    assert "\N{EN DASH}" in found


def test_a_hostile_page_name_is_shown_as_it_is_without_markup_or_escapes() -> None:
    found = shown(loads(page="[red]x[/]\x1b[2J\x07"), force_terminal=True)
    assert "[red]x[/]\N{REPLACEMENT CHARACTER}[2J" in found
    assert "\x1b[2J" not in found
    assert "\x07" not in found

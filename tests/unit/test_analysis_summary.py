import json
from pathlib import Path
from typing import Any

import pytest
from synthetic_results import PAGES, RTTS_MS, failed_record, load_record, write_journal, write_results

from firstflight.analysis import cell_pairs, summarize, summarize_pairs
from firstflight.analysis.records import Summary, known
from firstflight.analysis.summary import read_measured
from firstflight.errors import UsageError
from firstflight.report.write import write_report
from firstflight.results import LoadRecord


def block(number: int, **changes: Any) -> list[LoadRecord]:  # noqa: ANN401
    return [load_record(mode=mode, block=number, **changes) for mode in ("tcp", "tfo")]


def summary(*records: LoadRecord) -> Summary:
    return summarize_pairs(cell_pairs(records))


def kinds(found: Summary) -> list[str]:
    return [warning["kind"] for warning in found["warnings"]]


def ten_blocks() -> list[LoadRecord]:
    return [record for number in range(10) for record in block(number)]


def test_a_summary_has_one_cell_per_page_and_rtt_in_a_fixed_order(tmp_path: Path) -> None:
    found = summarize(write_results(tmp_path, blocks=2))
    assert not (tmp_path / "summary.json").exists()
    assert [(c["page"], c["rtt_ms"]) for c in found["cells"]] == [
        (p, r) for p in sorted(PAGES) for r in RTTS_MS
    ]
    write_report(read_measured(tmp_path))
    assert json.loads((tmp_path / "summary.json").read_text()) == found


def test_a_cell_has_the_keys_of_the_design() -> None:
    (cell,) = summary(*ten_blocks())["cells"]
    designed = """page rtt_ms down_mbps up_mbps topology client engine baseline
        treatment differs n baseline_ms treatment_ms improvement p_value
        verdict null_improvement proof"""
    assert set(designed.split()) <= set(cell)
    assert set(cell["baseline_ms"]) == {"median", "low", "high"}
    assert set(cell["improvement"]) == {"point", "low", "high"}
    assert cell["n"] == 10
    assert cell["url"] == PAGES["wikipedia"][0]


def test_every_key_of_a_cell_is_in_the_docs() -> None:
    (cell,) = summary(*ten_blocks())["cells"]
    docs = (Path(__file__).parents[2] / "docs" / "results.md").read_text().split("## summary.json")[1]
    keys = [*cell, *cell["proof"], *cell["proof"]["baseline"], *cell["baseline_ms"], *cell["improvement"]]
    assert [key for key in keys if f"`{key}`" not in docs] == []


def test_the_proof_adds_up_the_connections_of_all_loads() -> None:
    records = ten_blocks()
    connections = sum(known(r["load"]["connections"]) for r in records if r["load"]["mode"] == "tfo")
    (cell,) = summary(*records)["cells"]
    assert cell["proof"] == {
        "baseline": {
            "connections": connections,
            "offered": 0,
            "accepted": 0,
            "leaked": 0,
            "early": 0,
            "early_accepted": 0,
        },
        "treatment": {
            "connections": connections,
            "offered": connections,
            "accepted": connections,
            "leaked": 0,
            "early": 0,
            "early_accepted": 0,
        },
        "ok": True,
        "text": f"{connections} of {connections} connections carried data in the SYN",
    }
    assert not summary(*records)["warnings"]


def test_only_blocks_with_two_ok_loads_count() -> None:
    records = [
        *ten_blocks(),
        load_record(mode="tcp", block=10, plt_ms=9e6),
        failed_record(mode="tfo", block=10),
    ]
    (cell,) = summary(*records)["cells"]
    assert cell["n"] == 10
    assert cell["baseline_ms"] == summary(*ten_blocks())["cells"][0]["baseline_ms"]
    assert cell["baseline_loads"] == {"ok": 11, "failed": 0}
    assert cell["treatment_loads"] == {"ok": 10, "failed": 1}


def test_a_failed_load_is_said_with_its_reason() -> None:
    found = summary(*ten_blocks(), failed_record(mode="tfo", block=10))
    (warning,) = found["warnings"]
    assert warning["message"] == "1 load failed and is in no median: wikipedia 100 ms (timed out after 120 s)"
    assert warning["advice"]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [({"unmatched_requests": 2}, "unmatched requests"), ({"failed_requests": 3}, "failed requests")],
)
def test_failed_and_unmatched_requests_of_ok_loads_are_said(changes: dict[str, int], kind: str) -> None:
    found = summary(*ten_blocks()[:-2], *block(9, **changes))
    assert kinds(found) == [kind]
    assert str(2 * next(iter(changes.values()))) in found["warnings"][0]["message"]


def test_a_late_relay_is_said_with_its_worst_lateness() -> None:
    records = ten_blocks()
    records[3]["relay"] |= {"late": True, "late_max_ms": 7.25}
    found = summary(*records)
    assert kinds(found) == ["late relay"]
    assert "1 load (worst 7.2 ms): wikipedia 100 ms" in found["warnings"][0]["message"]


@pytest.mark.parametrize(("cells", "needed"), [(1, 6), (2, 7), (12, 9), (26, 11)])
def test_at_fewer_blocks_than_can_tell_the_verdict_is_too_few_repeats_with_the_number_needed(
    cells: int, needed: int
) -> None:
    def table(blocks: int) -> Summary:
        return summary(
            *(
                load_record(f"page{page}", mode=mode, block=n, load_id=f"{page}-{n}-{mode}")
                for page in range(cells)
                for n in range(blocks)
                for mode in ("tcp", "tfo")
            )
        )

    few = table(needed - 1)
    assert {cell["verdict"] for cell in few["cells"]} == {"too few repeats"}
    assert {cell["blocks_needed"] for cell in few["cells"]} == {needed}
    assert kinds(few) == ["too few repeats"]
    assert f"a verdict takes {needed}" in few["warnings"][0]["message"]
    assert {cell["verdict"] for cell in table(needed)["cells"]} == {"faster"}


def test_twelve_cells_of_five_repeats_have_no_verdict_beside_a_p_value_of_one_in_sixteen(
    tmp_path: Path,
) -> None:
    found = summarize(write_results(tmp_path, blocks=5))
    assert [cell["p_adjusted"] for cell in found["cells"]] == [pytest.approx(12 / 16)] * 12
    assert {cell["verdict"] for cell in found["cells"]} == {"too few repeats"}


def test_no_verdict_stands_without_proof() -> None:
    (cell,) = summary(*(without_tfo(record) for record in ten_blocks()))["cells"]
    assert known(cell["improvement"]["low"]) > 0
    assert cell["verdict"] == "not proved"


def without_tfo(record: LoadRecord, *, most: int = 1000) -> LoadRecord:
    """The load, with at most `most` of its connections changed to ones without TFO."""
    rows = record["connections"]
    if record["load"]["mode"] == "tfo":
        for row in rows[:most]:
            row |= {"syn_payload_bytes": 0, "cookie": "none", "syn_data_acked": False}
        left = sum(row["syn_data_acked"] for row in rows)
        record["load"] |= {"tfo_offered": left, "tfo_accepted": left}
    return record


def test_one_connection_without_tfo_is_enough_for_a_pair_not_to_be_proved() -> None:
    records = ten_blocks()
    without_tfo(records[-1], most=1)
    (cell,) = summary(*records)["cells"]
    assert cell["proof"]["ok"] is False
    assert cell["proof"]["text"].endswith("; 1 connection went without TFO for no reason")


@pytest.mark.parametrize("reason", [{"syn_retransmits": 1}, {"interfered": "drop"}, {"bytes_down": 0}])
def test_a_connection_whose_syn_the_path_took_keeps_its_promise(reason: Any) -> None:  # noqa: ANN401
    records = ten_blocks()
    without_tfo(records[-1], most=1)["connections"][0].update(reason)
    assert summary(*records)["cells"][0]["proof"]["ok"] is True


def test_where_rows_were_not_kept_only_segments_sent_again_excuse_a_connection() -> None:
    records = [without_tfo(record, most=2) for record in ten_blocks()]
    for record in records:
        record["connections"] = []
    assert summary(*records)["cells"][0]["proof"]["ok"] is False
    for record in records:
        record["load"]["retransmits"] = 2
    assert summary(*records)["cells"][0]["proof"]["ok"] is True


def test_a_tfo_load_that_carried_no_data_in_its_syns_is_not_proved() -> None:
    records = [without_tfo(r) for n in range(10) for r in block(n)]
    found = summary(*records)
    assert kinds(found)[0] == "no proof"
    assert found["cells"][0]["proof"]["ok"] is False
    assert found["cells"][0]["proof"]["text"].startswith("0 of ")


def test_a_cold_load_needs_no_data_in_its_syns() -> None:
    records = [r for n in range(5) for r in block(n, tfo_offered=0, tfo_accepted=0, cookies="cold")]
    assert summary(*records)["cells"][0]["proof"]["ok"] is True


def test_a_load_whose_syns_a_middlebox_stopped_is_proved_and_says_so() -> None:
    records = [r for n in range(5) for r in block(n, tfo_accepted=0)]
    for record in records:
        if record["load"]["mode"] == "tfo":
            record["proof"] = {"ok": True, "ledger": {"interfered": 23}}
            for row in record["connections"]:
                row |= {"syn_data_acked": False, "interfered": "drop"}
    proof = summary(*records)["cells"][0]["proof"]
    assert proof["ok"] is True
    assert proof["text"].endswith(", 0 accepted; the path interfered with 115")


def test_a_tcp_load_that_used_tfo_is_not_proved() -> None:
    records = ten_blocks()
    records[0]["load"]["tfo_offered"] = 4
    found = summary(*records)
    assert kinds(found)[0] == "no proof"
    assert found["cells"][0]["proof"]["text"].endswith("; so did 4 of the tcp loads")


def test_a_disagreement_of_the_ledger_is_quoted() -> None:
    records = ten_blocks()
    records[1]["proof"] = {"ok": False, "disagreements": ["ledger 23, TCP_INFO 22"]}
    assert '"ledger 23, TCP_INFO 22"' in summary(*records)["warnings"][0]["message"]


def test_a_load_without_proof_is_not_proved() -> None:
    records = ten_blocks()
    records[1]["proof"] = {}
    assert kinds(summary(*records)) == ["no proof"]


def test_one_mode_alone_has_a_median_and_a_warning_but_no_improvement() -> None:
    found = summary(*(load_record(mode="tcp", block=n) for n in range(5)))
    (cell,) = found["cells"]
    assert cell["n"] == 0
    assert cell["baseline_ms"]["median"] is not None
    assert cell["treatment_ms"]["median"] is None
    assert cell["improvement"]["point"] is None
    assert cell["verdict"] == "not compared"
    assert "nothing to compare" in kinds(found)


def test_noise_as_large_as_the_effect_is_said() -> None:
    loads = [
        load_record(mode=mode, block=n, plt_ms=1000.0 + 200 * (n % 2) + (mode == "tfo"))
        for n in range(6)
        for mode in ("tcp", "tfo")
    ]
    found = summary(*loads)
    assert kinds(found) == ["noise"]
    assert found["cells"][0]["null_improvement"] == pytest.approx(-0.2)


def test_attempts_that_do_not_count_are_said() -> None:
    records = ten_blocks()
    records[2]["attempt"] = 3
    found = summary(*records)
    assert kinds(found) == ["made again"]
    assert "2 earlier attempts of 1 load do not count: wikipedia 100 ms" in found["warnings"][0]["message"]


def test_a_load_whose_partner_did_not_end_ok_is_said_not_to_count() -> None:
    found = summary(*ten_blocks(), load_record(mode="tcp", block=10))
    assert kinds(found) == ["blocks without a pair"]
    assert "1 load ended ok, the other load" in found["warnings"][0]["message"]


def test_an_outlier_counts_and_is_said() -> None:
    records = ten_blocks()
    records[5]["load"]["plt_ms"] = 9000.0
    found = summary(*records)
    assert kinds(found) == ["outliers"]
    assert "1 load took far more or less" in found["warnings"][0]["message"]
    assert found["cells"][0]["n"] == 10


def test_a_difference_that_many_cells_may_show_by_chance_is_said() -> None:
    def cell(page: str, slower: int) -> list[LoadRecord]:
        """Ten blocks: with TFO `slower` of them are slower, and the others are about 1 % faster."""
        plt_ms = {"tcp": lambda n: 1000.0 + n, "tfo": lambda n: (1002 if n < slower else 990) + 0.9 * n}
        return [
            load_record(page, mode=mode, block=n, plt_ms=plt_ms[mode](n), load_id=f"{page}{n}{mode}")
            for n in range(10)
            for mode in ("tcp", "tfo")
        ]

    found = summary(*cell("amazon", 0), *cell("wsj", 3), *cell("nytimes", 3))
    weak = next(warning for warning in found["warnings"] if warning["kind"] == "many cells")
    assert weak["message"] == "among 3 cells such a difference may be random: nytimes 100 ms, wsj 100 ms"
    assert {c["page"]: c["verdict"] for c in found["cells"]}["wsj"] == "no difference shown"


def test_intervals_that_stayed_wider_than_was_asked_for_are_said(tmp_path: Path) -> None:
    records = [load_record(mode=m, block=n, plt_ms=1000.0 + 50 * n) for n in range(5) for m in ("tcp", "tfo")]
    records[-1]["load"]["plt_ms"] = 900.0
    write_journal(tmp_path, records)
    assert "wide intervals" not in kinds(summarize(tmp_path))
    (tmp_path / "plan.toml").write_text('until = "0.5%"\n')
    assert summarize(tmp_path)["warnings"][-1]["message"] == (
        "the interval is wider than the 0.5 % asked for: wikipedia 100 ms"
    )


def test_loads_that_differ_in_the_path_or_client_are_never_mixed() -> None:
    for changes in (
        {"down_mbps": None},
        {"loss": 0.01},
        {"topology": "star"},
        {"client": "wget2"},
        {"engine": "simulate"},
    ):
        found = summary(*ten_blocks(), *(r for n in range(10) for r in block(n, **changes)))
        assert [cell["n"] for cell in found["cells"]] == [10, 10], changes


def test_each_cookie_state_stands_beside_the_same_tcp_loads() -> None:
    tcp = [load_record(mode="tcp", block=n) for n in range(5)]
    tfo = [
        load_record(mode="tfo", block=n, cookies=c, load_id=f"{c}{n}")
        for n in range(5)
        for c in ("warm", "cold")
    ]
    cells = summary(*tcp, *tfo)["cells"]
    assert [(cell["cookies"], cell["n"]) for cell in cells] == [("cold", 5), ("warm", 5)]


def test_tcp_loads_stand_beside_the_cookie_state_of_their_block() -> None:
    loads = [
        load_record(mode=mode, block=n + 5 * place, cookies=c, load_id=f"{mode}{c}{n}")
        for n in range(5)
        for place, c in enumerate(("warm", "cold"))
        for mode in ("tcp", "tfo")
    ]
    cells = summary(*loads)["cells"]
    assert [(cell["cookies"], cell["n"], cell["baseline_loads"]["ok"]) for cell in cells] == [
        ("cold", 5, 5),
        ("warm", 5, 5),
    ]


def exact_blocks(count: int, **changes: Any) -> list[LoadRecord]:  # noqa: ANN401
    return [record for n in range(count) for record in block(n, engine="simulate", plt_ms=1000.0, **changes)]


@pytest.mark.parametrize("count", [1, 5])
def test_a_simulated_cell_without_randomness_is_exact_and_has_no_inference(count: int) -> None:
    found = summary(*exact_blocks(count))
    (cell,) = found["cells"]
    assert (cell["exact"], cell["verdict"], cell["p_value"], cell["p_adjusted"]) == (
        True,
        "exact",
        None,
        None,
    )
    for estimate in ("baseline_ms", "treatment_ms", "improvement", "shift_ms"):
        assert (cell[estimate]["low"], cell[estimate]["high"]) == (None, None)
    assert cell["null_low"] is None
    assert kinds(found) == ["simulated"]


@pytest.mark.parametrize(
    "drawn",
    [
        {"loss": 0.01},
        {"jitter_ms": 2.0},
        {"duplicate": 0.1},
        {"queue": "pie"},
        {"middlebox": "drop-data:0.3"},
        {"cookies": "warm:0.5"},
        {"cookies": "pool:3"},
        {"engine": "emulate"},
    ],
)
def test_a_cell_in_which_something_is_drawn_by_lot_is_not_exact(drawn: Any) -> None:  # noqa: ANN401
    records = exact_blocks(10)
    for record in records:
        record["load"] |= drawn
    (cell,) = summary(*records)["cells"]
    assert (cell["exact"], cell["p_value"]) == (False, 1.0)


def test_exact_cells_are_no_tests_and_do_not_count_among_them() -> None:
    noisy = [record for n in range(6) for record in block(n, page="amazon", load_id=f"a{n}")]
    for record in noisy:
        record["load"]["load_id"] += record["load"]["mode"]
    cells = summary(*noisy, *exact_blocks(1))["cells"]
    assert [(cell["verdict"], cell["p_adjusted"]) for cell in cells] == [("faster", 2 / 64), ("exact", None)]


def test_a_summary_does_not_depend_on_the_order_of_the_run() -> None:
    assert summary(*ten_blocks()) == summary(*reversed(ten_blocks()))


def test_a_torn_journal_is_said(tmp_path: Path) -> None:
    write_journal(tmp_path, ten_blocks())
    with (tmp_path / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"load": {"load_')
    assert kinds(summarize(tmp_path)) == ["cut short"]


def test_a_journal_without_a_load_is_refused_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").touch()
    with pytest.raises(UsageError, match="no load has ended yet") as caught:
        summarize(tmp_path)
    assert "--resume" in caught.value.hint


def test_a_run_whose_loads_all_failed_still_has_a_summary(tmp_path: Path) -> None:
    write_journal(tmp_path, [failed_record(mode=mode, block=n) for n in range(2) for mode in ("tcp", "tfo")])
    found = summarize(tmp_path)
    assert kinds(found) == ["failed loads", "nothing to compare"]
    assert found["cells"][0]["url"] is None

"""The answers to the course's questions come from the run's data: each has the numbers and the reason."""

from typing import Any

from synthetic_results import PAGES, failed_record, load_record

from firstflight.analysis import cell_pairs, summarize_pairs
from firstflight.analysis.critical_path.explanation import explain
from firstflight.analysis.summary import Evidence
from firstflight.course.answers import ALL_PAGES, PageAnswers, answers
from firstflight.pages.profile import embedded_page
from firstflight.results import LoadRecord

EFFECT, BY_RTT, CONTENT, SURPRISES, SUMMARY, BEST = (
    "What TFO does to the load time",
    "How the RTT changes it",
    "Does the content lend itself to it?",
    "What is surprising",
    "Summary",
    "Best and worst case",
)


def blocks(tcp_ms: float, tfo_ms: float, count: int = 10, **changes: Any) -> list[LoadRecord]:  # noqa: ANN401
    """Paired blocks. The PLTs grow by 0.1 % from block to block."""
    return [
        load_record(mode=mode, block=block, plt_ms=plt_ms * (1 + block / 1000), **changes)
        for block in range(count)
        for mode, plt_ms in (("tcp", tcp_ms), ("tfo", tfo_ms))
    ]


def asked(*records: LoadRecord, profiles: bool = True) -> list[PageAnswers]:
    pairs = cell_pairs(records)
    explanations = explain(pairs, embedded_page) if profiles else []
    return answers(Evidence(pairs, summarize_pairs(pairs), explanations))


def said(*records: LoadRecord, heading: str, profiles: bool = True) -> str:
    """The answer to one question (`heading`) about the only page."""
    (page,) = asked(*records, profiles=profiles)
    return " ".join(dict(page.sections)[heading])


def three_rtts(*gains: float) -> list[LoadRecord]:
    """Blocks at RTTs of 20, 100 and 200 ms. TFO saves these shares of a load of one second."""
    rtts_ms = zip((20.0, 100.0, 200.0), gains, strict=True)
    return [record for rtt_ms, gain in rtts_ms for record in blocks(1000, 1000 * (1 - gain), rtt_ms=rtt_ms)]


def test_an_rtt_of_zero_has_no_round_trips_to_count() -> None:
    records = [*blocks(100, 99, rtt_ms=0.0), *blocks(1000, 900, rtt_ms=100.0)]
    text = said(*records, heading=BY_RTT)
    assert "From 0 to 100 ms" in text
    assert "that is 1.0 round trips (at 100 ms)" in text


def test_every_question_is_answered_for_every_page_with_numbers() -> None:
    pages = asked(*blocks(1000, 900), *blocks(2000, 1900, page="amazon"))
    assert [page.page for page in pages] == ["amazon", "wikipedia", ALL_PAGES]
    assert [page.url for page in pages] == [PAGES["amazon"][0], PAGES["wikipedia"][0], ""]
    for page in pages[:-1]:
        assert [heading for heading, _ in page.sections] == [
            EFFECT,
            BY_RTT,
            CONTENT,
            SURPRISES,
            SUMMARY,
            BEST,
        ]
    sentences = [text for page in pages for _, texts in page.sections for text in texts]
    assert all(any(map(str.isdigit, text)) and text.endswith(".") for text in sentences)


def test_an_effect_is_said_with_its_interval_both_medians_and_the_noise() -> None:
    text = said(*blocks(1000, 900), heading=EFFECT)
    assert "At 100 ms RTT the page loads faster with TFO, +10.0 % (95 % interval +10.0 to +10.0)" in text
    assert "0.904 s with TFO, 1.00 s without TFO, medians of 10 paired blocks" in text
    assert "a load takes 100 ms less (95 % interval 100 to 101)" in text
    assert "The baseline against itself shows \N{MINUS SIGN}0.1 %" in text


def test_what_is_not_proved_or_not_paired_is_said_to_be_so() -> None:
    unproved = said(*blocks(1000, 900, tfo_offered=0, tfo_accepted=0), heading=EFFECT)
    assert "no result is given, without proof: 0 of " in unproved
    failed = [load_record(mode="tcp"), failed_record(mode="tfo")]
    assert "1 of 1 loads without TFO ended ok and 0 of 1 with TFO" in said(*failed, heading=EFFECT)
    assert said(*failed, heading=BEST) == "No cell has a proved result."


def test_the_course_of_the_improvement_with_the_rtt_is_told() -> None:
    rising = said(*three_rtts(0.02, 0.08, 0.15), heading=BY_RTT)
    assert "+2.0 % at 20 ms, +8.0 % at 100 ms and +15.0 % at 200 ms: it rises with every step" in rising
    assert "changes by 13.0 percentage points; the two 95 % intervals do not overlap" in rising
    assert "that is 1.0, 0.8 and 0.8 round trips" in rising
    assert "falls from 100 to 200 ms" in said(*three_rtts(0.02, 0.15, 0.08), heading=BY_RTT)
    assert "Only 100 ms RTT was measured" in said(*blocks(1000, 900), heading=BY_RTT)


def test_content_is_told_from_the_page_and_its_critical_paths() -> None:
    text = said(*blocks(1000, 900), heading=CONTENT)
    assert "29 requests to 4 origins over" in text
    assert "fit into one segment (1,400 bytes)" in text
    assert "kB on the wire" in text and "at 4 Mbit/s" in text
    assert "6 resources deep, of 29" in text
    assert "the critical path waits for" in text
    assert "the folder holds no profile" in said(*blocks(1000, 900), heading=CONTENT, profiles=False)


def test_nothing_surprising_is_said_with_the_least_gain() -> None:
    text = said(*three_rtts(0.02, 0.08, 0.15), heading=SURPRISES, profiles=False)
    assert text.startswith(
        "Nothing: in none of 3 cells is the page slower with TFO (the least gain is +2.0 %)"
    )


def test_a_regression_is_surprising_and_told_with_what_the_ledger_shows() -> None:
    records = blocks(1000, 1100)
    for record in records[1::2]:
        record["load"]["retransmits"] = 4
        record["connections"][0]["syn_retransmits"] = 1
    text = said(*records, heading=SURPRISES, profiles=False)
    assert "slower with TFO, \N{MINUS SIGN}10.0 %" in text
    assert (
        "4.0 retransmissions a load with TFO, 0.0 without TFO and 10 SYNs with data sent again in 10 loads"
        in text
    )


def test_a_fall_where_the_rtt_grows_is_surprising() -> None:
    text = said(*three_rtts(0.02, 0.15, 0.08), heading=SURPRISES, profiles=False)
    assert "From 100 ms to 200 ms RTT the improvement falls by 7.0 percentage points" in text
    assert "neither the ledger nor the critical path shows why" in text


def test_an_outlier_is_told_with_its_block_and_its_reason() -> None:
    records = blocks(1000, 900)
    records[6]["load"] |= {"plt_ms": 3000.0, "retransmits": 7}
    text = said(*records, heading=SURPRISES, profiles=False)
    assert "one load without TFO (block 3) takes 3.00 s, far more than the median of 1.01 s" in text
    assert "the ledger shows 7 retransmissions (median 0)" in text


def test_failed_loads_are_told_with_their_errors() -> None:
    text = said(*blocks(1000, 900), failed_record(mode="tfo", block=6), heading=SURPRISES, profiles=False)
    assert "0 loads without TFO and 1 with TFO failed: timed out after 120 s." in text


def test_many_cells_are_corrected_for_where_blocks_allow_it() -> None:
    assert "Corrected for the number of cells, 3 of 3 p values are below 5 %" in said(
        *three_rtts(0.02, 0.08, 0.15), heading=SUMMARY
    )
    few = [r for rtt_ms in (20.0, 100.0) for r in blocks(1000, 900, 5, rtt_ms=rtt_ms)]
    assert "the verdict is too few repeats in 2" in said(*few, heading=SUMMARY)


def test_the_best_and_the_worst_cell_are_named_over_all_pages() -> None:
    pages = asked(*blocks(1000, 900), *blocks(2000, 2100, page="amazon", rtt_ms=20.0))
    best, worst, _ = dict(pages[-1].sections)[BEST]
    assert best.startswith("Best: wikipedia at 100 ms RTT, +10.0 %")
    assert worst.startswith("Worst: amazon at 20 ms RTT, \N{MINUS SIGN}5.0 %")

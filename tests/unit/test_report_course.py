import re
from typing import Any

import pytest
from synthetic_results import failed_record, load_record

from firstflight.analysis import cell_pairs, summarize_pairs
from firstflight.analysis.records import Summary
from firstflight.course.observations import HEADER, NULL_HEADER, observations, python2_str, sanitize_file

ROW = re.compile(r"\t\d+ \t\d+\.\d{1,3} \t\d+\.\d{1,3} \t-?\d+\.\d+\n")


def summary(*plt_ms: tuple[float, float, float], **changes: Any) -> Summary:  # noqa: ANN401
    """A summary of one block per (RTT, PLT without, PLT with)."""
    loads = [
        load_record("wikipedia", rtt_ms, mode, plt_ms=plt, **changes)
        for rtt_ms, tcp_ms, tfo_ms in plt_ms
        for mode, plt in (("tcp", tcp_ms), ("tfo", tfo_ms))
    ]
    return summarize_pairs(cell_pairs(loads))


def test_a_row_of_known_numbers() -> None:
    found = observations(summary((200.0, 5022.732, 4066.505)))
    assert found.endswith("\n\t200 \t5022.732 \t4066.505 \t19.0379857018\n")
    assert found.startswith("Page\tRTT(ms)\tPLT: no TFO (s)\tPLT: TFO (s)\tImprov.\nhttpen.wikipedia.org")


def test_a_slower_load_is_negative() -> None:
    assert observations(summary((20.0, 2441.437, 3357.394))).endswith(
        "\t20 \t2441.437 \t3357.394 \t-37.5171261843\n"
    )


def test_rtts_descend_and_every_row_has_the_course_s_shape() -> None:
    lines = observations(summary((20.0, 1000.0, 900.0), (200.0, 3000.1, 2000.0), (100.0, 2000.5555, 1e3)))
    rows = lines.splitlines(keepends=True)[2:]
    assert [row.split()[0] for row in rows] == ["200", "100", "20"]
    assert all(map(ROW.fullmatch, rows))


def test_two_paths_make_two_tables() -> None:
    both = summary((20.0, 1000.0, 900.0))
    both["cells"] += summary((20.0, 1000.0, 950.0), topology="star")["cells"]
    tables = observations(both).split("\n\n")
    assert [table.count("\t20 ") for table in tables] == [1, 1]
    assert all(table.startswith(HEADER) for table in tables)


def test_what_noise_prints_follows_in_a_table_of_its_own() -> None:
    loads = [
        load_record(block=block, mode=mode, plt_ms=1000.0 + 50 * (block % 2) - 100 * (mode == "tfo"))
        for block in range(4)
        for mode in ("tcp", "tfo")
    ]
    table, null = observations(summarize_pairs(cell_pairs(loads))).split("\n\n")
    assert table.startswith(HEADER)
    assert null.startswith(NULL_HEADER)
    assert null.endswith("\n\t100 \t1000.0 \t1050.0 \t-5.0\n")


def test_cells_without_a_pair_are_left_out() -> None:
    loads = [load_record(mode="tcp"), failed_record(mode="tfo")]
    assert observations(summarize_pairs(cell_pairs(loads))) == ""


def test_cells_without_proof_are_left_out() -> None:
    assert observations(summary((20.0, 1000.0, 900.0), tfo_offered=0, tfo_accepted=0)) == ""


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (5466.56, "5466.56"),
        (2000.0, "2000.0"),
        (0.0, "0.0"),
        (1e-5, "1e-05"),
        (19.03798570180001, "19.0379857018"),
    ],
)
def test_floats_are_written_as_python_2_printed_them(number: float, text: str) -> None:
    assert python2_str(number) == text


@pytest.mark.parametrize(
    ("url", "label"),
    [
        ("http://www.amazon.com", "httpwww.amazon.com"),
        (
            "http://en.wikipedia.org/wiki/Transmission_Control_Protocol",
            "httpen.wikipedia.orgwikiTransmission_Control_Protocol",
        ),
        ("http://a.example/x y(1)?q=2&r#\u00e9\t\n", "httpa.examplex y(1)q2r"),
    ],
)
def test_labels_are_sanitised_as_the_course_does(url: str, label: str) -> None:
    assert sanitize_file(url) == label

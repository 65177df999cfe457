from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstflight.analysis import words


@pytest.mark.parametrize(
    ("fraction", "shown"),
    [
        (0.163, "+16.3 %"),
        (-0.031, "\N{MINUS SIGN}3.1 %"),
        (0.0, "0.0 %"),
        (-0.0001, "0.0 %"),
        (None, words.DASH),
    ],
)
def test_percentages_have_a_real_sign(fraction: float | None, shown: str) -> None:
    assert words.percent(fraction) == shown


@pytest.mark.parametrize(
    ("fraction", "verdict", "shown"),
    [
        (0.163, "faster", "16.3 % faster"),
        (-0.031, "slower", "3.1 % slower"),
        (0.163, "too few repeats", "+16.3 %, too few repeats"),
        (-0.001, "no difference shown", "\N{MINUS SIGN}0.1 %, no difference shown"),
        (0.163, "exact", "+16.3 %, exact"),
        (0.163, "not proved", "not proved"),
        (None, "not compared", "not compared"),
    ],
)
def test_an_effect_is_called_faster_or_slower_only_where_that_is_the_verdict(
    fraction: float | None, verdict: str, shown: str
) -> None:
    cell: Any = {"improvement": {"point": fraction}, "verdict": verdict}
    assert words.effect(cell) == shown


def test_times_for_people_are_in_seconds() -> None:
    assert words.seconds(3490.0) == "3.49 s"
    assert words.seconds(843.21) == "0.843 s"
    assert words.seconds(None) == words.DASH
    assert words.spread({"median": None, "low": 3410.0, "high": 3520.0}) == "3.41\N{EN DASH}3.52"
    assert words.spread({"median": None, "low": None, "high": None}) == ""


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://a.example/", "a.example"),
        ("http://a.example/b/c.js?q=1#f", "a.example/b/c.js"),
        ("http://a.example/a/long/way/down/to/item-28.js", "a.example/\N{HORIZONTAL ELLIPSIS}/item-28.js"),
        ("wikipedia", "wikipedia"),
        ("a.example/go?to=http://b.example/", "a.example/go"),
    ],
)
def test_short_urls_keep_host_and_file(url: str, shown: str) -> None:
    assert words.short_url(url, 30) == shown


@given(st.text(max_size=200), st.integers(20, 60))
def test_a_short_url_is_short_whatever_it_was(url: str, limit: int) -> None:
    assert len(words.short_url(url, limit)) <= limit


def test_variants_name_only_what_differs() -> None:
    cell: Any = {"down_mbps": 4.0, "up_mbps": 0.256, "loss": 0.0, "topology": "access"}
    cell |= {"client": "loader", "engine": "emulate", "cookies": "warm"}
    cells = [cell, {**cell, "topology": "star", "down_mbps": None}]
    assert words.varying(cells) == ["down_mbps", "topology"]
    assert [words.variant(c, words.varying(cells)) for c in cells] == [
        "4.0mbit-down access",
        "unlimited-down star",
    ]
    assert words.variant(cell, []) == ""

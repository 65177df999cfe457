from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstflight.analysis.compare import compare, open_side
from firstflight.api import run
from firstflight.errors import UsageError
from firstflight.experiment.plan_file import PlanFile, resolve
from firstflight.model.what_if import WhatIf, parse_what_if

SIMULATED = {"engine": "simulate"}

unproven = st.tuples(st.none(), st.none()) | st.tuples(
    st.integers(0, 10**6), st.none() | st.integers(0, 60_000)
)
what_ifs = st.builds(
    lambda negative_cache, one_time, own, limits, syn_payload, early: WhatIf(
        negative_cache, one_time, own, limits[0], limits[1], syn_payload, early
    ),
    st.sampled_from([None, "load", "visit"]),
    st.none() | st.integers(1, 1_000),
    st.booleans(),
    unproven,
    st.integers(1, 10),
    st.none() | st.integers(0, 10**6),
)


@given(what_ifs)
def test_what_is_otherwise_written_is_read_back(what_if: WhatIf) -> None:
    assert parse_what_if(str(what_if)) == what_if


def test_a_plan_takes_a_text_or_an_array() -> None:
    text, array = "negative-cache,syn-payload=4", ["negative-cache", "syn-payload=4"]
    plans = [resolve({}, PlanFile(values={**SIMULATED, "what_if": value})) for value in (text, array)]
    assert plans[0] == plans[1]
    assert f'what_if = "{text}"' in plans[0].to_toml()


@pytest.mark.parametrize(
    "text",
    [
        "quic",
        "",
        "negative-cache=always",
        "one-time-cookies=0",
        "client-cookies=1",
        "unproven",
        "unproven=lots",
        "unproven=100:x",
        "syn-payload",
        "syn-payload=1",
        "syn-payload=11",
        "early-data=-1",
        "early-data=",
        "early-data,early-data=5",
    ],
)
def test_what_cannot_be_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(UsageError, match=r"^what_if: ") as caught:
        resolve({**SIMULATED, "cookies": "cold", "scheme": "https", "what_if": text})
    assert caught.value.hint


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"engine": "emulate", "what_if": "syn-payload=2"}, "no kernel implements syn-payload=2"),
        ({"what_if": "early-data", "scheme": "http"}, "early-data goes with TLS's ClientHello"),
        ({"what_if": "one-time-cookies", "mode": "tcp"}, "one-time-cookies=1 has no effect"),
        ({"what_if": "unproven=1000"}, "unproven has no effect"),
        ({"what_if": "client-cookies", "cookies": "stale"}, "client-cookies has no effect"),
    ],
)
def test_what_would_make_no_difference_is_refused(keys: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=f"^what_if: {message}") as caught:
        resolve(SIMULATED | keys)
    assert caught.value.hint


def test_a_run_is_made_as_if_and_says_so_and_a_comparison_shows_it(tmp_path: Path) -> None:
    today, otherwise = (
        run(
            pages="wikipedia",
            engine="simulate",
            rtt=100,
            repeats=1,
            cookies="cold",
            what_if=what,
            out=tmp_path / what,
        )
        for what in ("off", "unproven=14600")
    )
    loads = [found.loads.filter(pl.col("mode") == "tfo").row(0, named=True) for found in (today, otherwise)]
    assert loads[0]["tfo_accepted"] < loads[1]["tfo_accepted"] == loads[1]["connections"]
    assert loads[1]["plt_ms"] < loads[0]["plt_ms"] - 100
    said = {warning["kind"]: warning["message"] for warning in otherwise.summary["warnings"]}
    assert said["what if"].endswith("no kernel has: unproven=14600")
    compared = compare(open_side(str(today.folder)), open_side(str(otherwise.folder)))
    assert ("what if", "off", "unproven=14600") in compared.setup

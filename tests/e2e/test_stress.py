"""`firstflight stress`: all clients and SYNs are accounted for; floods show in the server's counters."""

import csv
import json
import os
import shutil
import signal
import sys
from typing import Any

import pytest
from program import DEADLINE_S, Program, unavailable, until

RTT_MS = 50.0
CLIENTS = 100
QUICK = ("--repeats", "1", "--seconds", "0.5", "--warm-up", "0.2", "--rates", "200", "--rtt", "50", "--json")
ROOMY = ("--backlog", "65535", "--flood-rate", "1000", "--addresses", "50")
"""A queue of SYNs that is too long for the flood to fill."""


def stress(program: Program, *arguments: str) -> list[dict[str, Any]]:
    """The rows of a few short measurements. Each must have its proof."""
    ended = program("stress", *QUICK, *arguments, "--out", "out", "--quiet")
    assert ended.code == 0, ended.err
    rows: list[dict[str, Any]] = json.loads(ended.out)["measurements"]
    with (program.folder / "out" / "stress.csv").open() as file:
        assert len(list(csv.reader(file))) == 1 + len(rows)
    assert all(row["proof"] for row in rows), rows
    return rows


def by_mode(rows: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The rows of TCP and of Fast Open; asserts what every client gets while there is no flood."""
    tcp, tfo = sorted(rows, key=lambda row: row["mode"])
    for row, round_trips in ((tcp, 2), (tfo, 1)):
        assert row["requests"] == row["answered"] == row["syns"] == CLIENTS
        assert round_trips * RTT_MS <= row["min_ms"]
        assert row["p50_ms"] < (round_trips + 0.5) * RTT_MS
        assert row["server_cpu_us"] > 0
        assert row["receive_cpu_us"] > 0
    assert (tcp["syns_with_data"], tcp["syn_data_acked"], tcp["fast_open_passive"]) == (0, 0, 0)
    assert tfo["syns_with_data"] == tfo["syn_data_acked"] == tfo["fast_open_passive"] == CLIENTS
    return tcp, tfo


@pytest.mark.timing
def test_every_client_is_served_and_fast_open_saves_a_round_trip_and_packets(program: Program) -> None:
    tcp, tfo = by_mode(stress(program))
    assert tfo["packets_up"] < tcp["packets_up"]
    assert tfo["packets_down"] < tcp["packets_down"]
    assert not (tfo["flood_syns"] or tfo["victims_packets"])


@pytest.mark.timing
def test_nginx_takes_the_same_load(program: Program) -> None:
    if not shutil.which("nginx"):
        unavailable("nginx is not installed: make system")
    by_mode(stress(program, "--server", "nginx"))


def test_a_server_without_fast_open_serves_plainly_and_is_named(program: Program) -> None:
    server = f"{sys.executable} -m http.server 80"
    ended = program("stress", *QUICK, "--server", server, "--mode", "tfo", "--out", "out", "--quiet")
    assert ended.code == 0, ended.err
    [row] = json.loads(ended.out)["measurements"]
    # Its backlog of five connections (`request_queue_size`) overflows if a busy machine holds it up.
    assert row["answered"] >= 0.9 * CLIENTS
    assert (row["syn_data_acked"], row["proof"]) == (0, True)
    assert "it does not offer Fast Open" in ended.err


@pytest.mark.ordinary_user
def test_forged_cookies_are_refused_one_by_one_and_valid_ones_fill_the_pending_limit(
    program: Program,
) -> None:
    # About ten clients per round trip are waiting for the end of their handshake. That is far below the
    # limit, even if a few dozen come at once.
    limit = ("--qlen", "64", "--warm-up", "0.4")
    forged, valid = stress(program, "--mode", "tfo", "--flood", "forged,valid", *limit, *ROOMY)
    assert forged["answered"] == valid["answered"] == CLIENTS
    assert forged["fast_open_refused"] >= 0.8 * forged["flood_syns"] > 0
    assert forged["syn_data_acked"] == CLIENTS, "clients with a cookie do not notice"
    # RFC 7413, section 5.1: at the limit the server does not use Fast Open for any client. All clients need a
    # full handshake.
    assert valid["pending_limit_hits"] >= 0.8 * (valid["flood_syns"] + CLIENTS)
    assert (valid["syn_data_acked"], valid["syn_data_not_acked"]) == (0, CLIENTS)
    assert valid["min_ms"] >= 2 * RTT_MS


def test_a_full_queue_of_syns_is_answered_with_syn_cookies_or_not_at_all(program: Program) -> None:
    arguments = ("--mode", "tfo", "--flood", "plain", "--backlog", "64", "--flood-rate", "2000")
    on, off = stress(program, *arguments, "--syn-cookies", "on,off", "--timeout", "0.5")
    assert on["answered"] == CLIENTS
    assert on["syn_cookies_received"] >= 0.8 * CLIENTS
    assert on["syn_data_not_acked"] >= 0.8 * CLIENTS, "no Fast Open while SYN cookies are sent"
    assert off["syn_cookies_sent"] == 0
    assert off["answered"] < 0.5 * CLIENTS
    assert off["dropped_syns"] > 0
    assert off["answered"] + off["timed_out"] == CLIENTS


def test_ctrl_c_keeps_what_was_measured_and_resume_completes_it(program: Program) -> None:
    arguments = ("stress", *QUICK, "--repeats", "2", "--out", "out")
    journal = program.folder / "out" / "stress.jsonl"
    run = program.start(*arguments)
    assert until(
        lambda: (journal.is_file() and journal.read_bytes().count(b"\n") > 0) or run.poll() is not None
    )
    os.killpg(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=DEADLINE_S)
    assert run.returncode == 128 + signal.SIGINT
    assert "continue with: firstflight stress --resume --out out" in err
    kept = json.loads(out)["measurements"]
    assert 1 <= len(kept) < 4
    assert program.processes() == []

    ended = program("stress", "--resume", "--out", "out", "--json")
    assert ended.code == 0, ended.err
    rows = json.loads(ended.out)["measurements"]
    assert rows[: len(kept)] == kept
    assert sorted((row["repeat"], row["mode"]) for row in rows) == [
        (repeat, mode) for repeat in range(2) for mode in ("tcp", "tfo")
    ]

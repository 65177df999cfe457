"""`firstflight gate --engine both`: two versions of a small page on the virtual clock and the real kernel."""

import json
import os
import signal

import pytest
from program import DEADLINE_S, Program, until

RTT_MS, REPEATS, MORE_MS = 30, 6, 200
NETWORK = f'rtt = {RTT_MS}\ndown = "20mbit"\nup = "5mbit"\n'


def profile(name: str, server_ms: float) -> str:
    resources = [
        {
            "url": f"https://shop.example/{path}",
            "kind": kind,
            "mime": mime,
            "request_bytes": 300,
            "header_bytes": 300,
            "body_bytes": 5_000,
            "server_ms": 10.0 + more_ms,
            **({"initiator": {"resource": 0, "via": "parser", "at_byte": 100}} if path else {}),
        }
        for path, kind, mime, more_ms in (
            ("", "document", "text/html", server_ms),
            ("app.css", "style", "text/css", 0.0),
            ("photo.png", "image", "image/png", 0.0),
        )
    ]
    hosts = [{"host": "shop.example", "http": "2"}]
    return json.dumps(
        {"format": "firstflight-profile/1", "name": name, "resources": resources, "hosts": hosts}
    )


@pytest.fixture
def arguments(program: Program) -> list[str]:
    folder = program.folder
    (folder / "base.json").write_text(profile("base", 0.0))
    (folder / "head.json").write_text(profile("head", MORE_MS))
    (folder / "near.toml").write_text(NETWORK)
    return ["gate", "--base", "base.json", "--head", "head.json", "--network", "near.toml"]


@pytest.mark.ordinary_user
def test_a_slower_server_is_found_on_both_clocks_without_root(program: Program, arguments: list[str]) -> None:
    ended = program(*arguments, "--engine", "both", "--repeats", str(REPEATS), "--json")
    assert ended.code == 1, ended.err
    simulated, measured = json.loads(ended.out)["verdicts"]
    assert (simulated["engine"], measured["engine"]) == ("simulate", "emulate")
    assert measured["pairs"] == REPEATS
    for verdict in (simulated, measured):
        assert verdict["verdict"] == "slower"
        load = next(moment for moment in verdict["moments"] if moment["name"] == "plt")
        assert MORE_MS - RTT_MS < load["difference_ms"] < MORE_MS + 2 * RTT_MS
    assert program.processes() == []


def test_ctrl_c_ends_a_gate_without_a_verdict(program: Program, arguments: list[str]) -> None:
    gate = program.start(*arguments, "--engine", "emulate", "--repeats", "200")
    assert until(lambda: program.laboratories() or gate.poll() is not None)
    os.killpg(gate.pid, signal.SIGINT)
    out, err = gate.communicate(timeout=DEADLINE_S)
    assert gate.returncode == 128 + signal.SIGINT
    assert "error: stopped by SIGINT: there is no verdict" in err
    assert "Traceback" not in err
    assert not out
    assert until(lambda: program.processes() == [])

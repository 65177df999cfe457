"""`firstflight check`: each row judged from its own wire, and wrong where it should be."""

import json
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pcapng
import pytest
from program import Ended, Program, unavailable, until

from firstflight.engines.emulate import Emulator

NGINX = """
user root;
pid {folder}/nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{ listen 8080 {fast_open}; location / {{ return 200 "hello"; }} }}
}}
"""
RULES = ("R1-grant", "R1-cookie-client", "R10-limit", "R12-invalid", "R14-early", "R14-window")


@pytest.fixture(scope="module")
def checked(emulator: Emulator, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ended, Path]:
    """One check of this kernel, which all tests read."""
    program = Program(tmp_path_factory.mktemp("check"))
    return program("check", "--out", "kernel"), program.folder / "kernel"


def rows_of(folder: Path) -> dict[str, dict[str, Any]]:
    document = json.loads((folder / "check.json").read_text())
    return {row["id"]: row for row in document["rows"]}


def test_every_rule_is_judged_on_this_kernel(checked: tuple[Ended, Path]) -> None:
    ended, folder = checked
    rows = rows_of(folder)
    assert ended.code == 0, ended.err
    assert {row["verdict"] for row in rows.values()} == {"holds", "deviates", "not applicable"}
    numbers = {int(found[1]) for found in (re.match(r"R(\d+)-", name) for name in rows) if found}
    assert numbers == set(range(1, 20))
    assert all(row["seen"] and row["packets"] for row in rows.values())


def test_linux_takes_no_note_of_lost_data_and_does_the_rest(checked: tuple[Ended, Path]) -> None:
    verdicts = {name: row["verdict"] for name, row in rows_of(checked[1]).items()}
    assert {verdicts[name] for name in ("R5-silence", "R6-disable")} == {"deviates"}
    kept = (
        "R1-grant",
        "R2-request",
        "R3-cache",
        "R7-timeout",
        "R9-sysctl",
        "R10-limit",
        "R14-early",
        "R15-resend",
    )
    assert {verdicts[name] for name in kept} == {"holds"}


@pytest.mark.ordinary_user
def test_rows_can_be_named_and_come_as_json(program: Program) -> None:
    ended = program("check", "R2-request", "R14", "R19-drop-data", "--json")
    assert ended.code == 0, ended.err
    verdicts = {row["id"]: row["verdict"] for row in json.loads(ended.out)["rows"]}
    assert verdicts == dict.fromkeys(
        ("R2-request", "R14-client", "R14-early", "R14-window", "R14-together", "R19-drop-data"), "holds"
    )


def test_what_a_row_says_is_in_its_capture(checked: tuple[Ended, Path]) -> None:
    folder = checked[1]
    rows = rows_of(folder)
    for name, row in rows.items():
        crossed = [packet for packet in row["packets"] if packet["text"] != "ICMP"]
        assert len(pcapng.read(folder / "captures" / row["capture"])) == len(crossed), name
    early = pcapng.read(folder / "captures" / "R14-early.pcapng")
    opened = max(number for number, packet in enumerate(early) if packet.syn and not packet.ack)
    assert early[opened].fast_open
    assert early[opened].payload.startswith(b"GET / ")
    after = early[opened + 1 :]
    assert {packet.source for packet in after} == {early[opened].destination}
    assert after[-1].payload


def test_people_get_a_table_and_a_page_of_the_same(checked: tuple[Ended, Path]) -> None:
    ended, folder = checked
    page = (folder / "check.html").read_text()
    for name, row in rows_of(folder).items():
        assert re.search(rf"^{name} .*{row['verdict']}", ended.out, re.MULTILINE)
        assert f'id="{name}"' in page
        assert f"captures/{row['capture']}" in page
    assert "://" not in page


def check_nginx(program: Program, fast_open: str) -> dict[str, dict[str, Any]]:
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin") or unavailable("nginx is not installed")
    configuration = program.folder / "nginx.conf"
    configuration.write_text(NGINX.format(folder=program.folder, fast_open=fast_open))
    command = f"{nginx} -c {configuration}"
    ended = program("check", *RULES, "--server", command, "--port", "8080", "--out", "nginx")
    assert ended.code == 0, ended.err
    return rows_of(program.folder / "nginx")


@pytest.mark.ordinary_user
def test_nginx_does_fast_open_when_it_is_told_to(program: Program) -> None:
    rows = check_nginx(program, "fastopen=5")
    servers = {name: row["verdict"] for name, row in rows.items() if row["side"] == "server"}
    assert servers.pop("R14-window") == "not applicable"
    assert set(servers.values()) == {"holds"}
    assert rows["R10-limit"]["seen"].startswith("5 were taken")
    assert rows["R1-cookie-client"]["verdict"] == "not applicable"


def test_a_server_without_fast_open_does_not_pass(program: Program) -> None:
    rows = check_nginx(program, "")
    assert rows["R1-grant"]["verdict"] == "deviates"
    assert {rows[name]["verdict"] for name in ("R12-invalid", "R14-early")} == {"not applicable"}
    assert "Fast Open is off" in rows["R14-early"]["seen"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("R99",), 2, "R99: there is no such row"),
        (("--port", "80"), 2, "--port requires --server"),
        (("--server", "sleep 1", "--port", "70000"), 2, "port: 70000 is no port"),
        (("--server", "no-such-server"), 2, "server: cannot find no-such-server"),
        (("--server", "'"), 2, 'server: "\'": No closing quotation'),
        (("--server", "sh -c 'echo no config; exit 3'"), 1, "server: sh ended with exit code 3 and did not"),
        (("--out", "/etc/hosts"), 2, "out: /etc/hosts is not a folder"),
    ],
)
def test_a_wrong_call_says_what_to_mend(
    arguments: tuple[str, ...], code: int, message: str, program: Program
) -> None:
    ended = program("check", *arguments)
    assert ended.code == code
    assert ended.err.startswith(f"error: {message}")
    assert "hint:" in ended.err


def test_ctrl_c_ends_it_and_leaves_nothing_behind(program: Program) -> None:
    process = program.start("check", "R6")
    assert until(program.laboratories)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 128 + signal.SIGINT
    assert "stopped before every row was done" in said
    assert until(lambda: program.processes() == [])

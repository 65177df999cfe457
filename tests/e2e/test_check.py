"""`firstflight check`: each row's verdict follows from its own packets; servers that break a rule deviate."""

import json
import re
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pcapng
import pytest
from fast_open_site import serve
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
HERE = Path(__file__).parent
RULES = ("R1-grant", "R1-cookie-client", "R10-limit", "R12-invalid", "R14-early", "R14-window")


@pytest.fixture(scope="module")
def checked(emulator: Emulator, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ended, Path]:
    """One check of this kernel; all tests read its result."""
    program = Program(tmp_path_factory.mktemp("check"))
    written = ("--out", "kernel", "--tap", "kernel.tap", "--junit", "kernel.xml")
    return program("check", *written), program.folder / "kernel"


def rows_of(folder: Path) -> dict[str, dict[str, Any]]:
    document = json.loads((folder / "check.json").read_text())
    return {row["id"]: row for row in document["rows"]}


def test_every_rule_is_judged_on_this_kernel(checked: tuple[Ended, Path]) -> None:
    ended, folder = checked
    rows = rows_of(folder)
    assert "error: a MUST or MUST NOT deviates in 3 rows: R5-silence, R5-refusal, R5-icmp\n" in ended.err
    assert ended.code == 1
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


def test_suspected_black_holes_turn_fast_open_off_for_the_time_that_is_set(
    checked: tuple[Ended, Path],
) -> None:
    rows = {name: row for name, row in rows_of(checked[1]).items() if name.startswith("blackhole-")}
    assert len(rows) == 7
    assert {row["verdict"] for row in rows.values()} == {"holds"}, rows


def test_levels_are_counted_apart(checked: tuple[Ended, Path]) -> None:
    ended, folder = checked
    document = json.loads((folder / "check.json").read_text())
    assert document["format"] == "firstflight-check/2"
    assert sum(sum(counts.values()) for counts in document["levels"].values()) == len(document["rows"])
    for level, counts in document["levels"].items():
        words = [f"{counts['holds']} hold"] + [f"{counts['deviates']} deviate"] * bool(counts["deviates"])
        assert f"  {level}: {', '.join(words)}" in ended.out
    assert document["levels"]["MUST"]["deviates"] == 3


def test_tap_and_junit_fail_where_the_exit_code_does(checked: tuple[Ended, Path]) -> None:
    folder = checked[1]
    rows = rows_of(folder)
    must = {"R5-silence", "R5-refusal", "R5-icmp"}
    tap = (folder.parent / "kernel.tap").read_text().splitlines()
    assert tap[:2] == ["TAP version 14", f"1..{len(rows)}"]
    failed = {line.split()[4] for line in tap if line.startswith("not ok") and " # TODO " not in line}
    assert failed == must
    suite = ElementTree.parse(folder.parent / "kernel.xml").getroot()[0]
    cases = {case.attrib["name"].split()[0]: case for case in suite.iter("testcase")}
    assert list(cases) == list(rows)
    assert {name for name, case in cases.items() if case.find("failure") is not None} == must
    assert suite.attrib["failures"] == str(len(must))
    skipped = {name for name, row in rows.items() if row["verdict"] != "holds"} - must
    assert {name for name, case in cases.items() if case.find("skipped") is not None} == skipped


def test_the_list_names_every_row_and_does_none(checked: tuple[Ended, Path], program: Program) -> None:
    ended = program("check", "--list")
    assert ended.code == 0, ended.err
    rows = rows_of(checked[1])
    assert [line.split()[0] for line in ended.out.splitlines()[1:] if line[:1].strip()] == list(rows)
    listed = json.loads(program("check", "--list", "--only", "R10", "--json").out)["rows"]
    assert [(row["id"], row["section"], row["level"]) for row in listed] == [("R10-limit", "4.2", "MUST")]
    assert "verdict" not in listed[0]


OVER_IPV6 = (
    "R1-grant",
    "R1-cookie-client",
    "R3",
    "R4",
    "R5-icmp",
    "R10-limit",
    "R12",
    "R14",
    "R19-strip-data",
    "frag-needed",
    "blackhole-default",
)


def test_ipv6_gets_the_same_verdicts(checked: tuple[Ended, Path], program: Program) -> None:
    ended = program("check", "--ip", "6", "--only", ",".join(OVER_IPV6), "--out", "six")
    assert ended.code == 1, ended.err
    assert "a MUST or MUST NOT deviates in 1 row: R5-icmp\n" in ended.err
    rows = rows_of(program.folder / "six")
    over_ipv4 = rows_of(checked[1])
    assert {name: row["verdict"] for name, row in rows.items()} == {
        name: over_ipv4[name]["verdict"] for name in rows
    }
    for name, row in rows.items():
        packets = pcapng.read(program.folder / "six" / "captures" / row["capture"])
        assert packets, name
        assert all(":" in packet.source for packet in packets), name


@pytest.mark.ordinary_user
def test_rows_can_be_named_and_come_as_json(program: Program) -> None:
    ended = program("check", "R2-request", "R14", "--only", "R19-drop-data, R14", "--json")
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


def check_nginx(program: Program, fast_open: str, *, code: int) -> dict[str, dict[str, Any]]:
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin") or unavailable("nginx is not installed")
    configuration = program.folder / "nginx.conf"
    configuration.write_text(NGINX.format(folder=program.folder, fast_open=fast_open))
    command = f"{nginx} -c {configuration}"
    ended = program("check", *RULES, "--server", command, "--port", "8080", "--out", "nginx")
    assert ended.code == code, ended.err
    return rows_of(program.folder / "nginx")


@pytest.mark.ordinary_user
def test_nginx_does_fast_open_when_it_is_told_to(program: Program) -> None:
    rows = check_nginx(program, "fastopen=5", code=0)
    servers = {name: row["verdict"] for name, row in rows.items() if row["side"] == "server"}
    assert servers.pop("R14-window") == "not applicable"
    assert set(servers.values()) == {"holds"}
    assert rows["R10-limit"]["seen"].startswith("5 were taken")
    assert rows["R1-cookie-client"]["verdict"] == "not applicable"


def test_a_server_without_fast_open_does_not_pass(program: Program) -> None:
    rows = check_nginx(program, "", code=1)
    assert rows["R1-grant"]["verdict"] == "deviates"
    assert {rows[name]["verdict"] for name in ("R12-invalid", "R14-early")} == {"not applicable"}
    assert "Fast Open is off" in rows["R14-early"]["seen"]


def test_a_server_that_breaks_a_must_fails_the_check(program: Program) -> None:
    command = f"{sys.executable} {HERE / 'careless_server.py'}"
    flags = ("--server", command, "--port", "8080", "--junit", "careless.xml", "--json")
    ended = program("check", "R1-grant", "R1-length-server", "R12-invalid", *flags)
    assert ended.code == 1
    assert "a MUST or MUST NOT deviates in 1 row: R1-grant\n" in ended.err
    rows = {row["id"]: row for row in json.loads(ended.out)["rows"]}
    assert rows["R1-grant"]["verdict"] == "deviates"
    assert {rows[name]["verdict"] for name in ("R1-length-server", "R12-invalid")} == {"not applicable"}
    case = ElementTree.parse(program.folder / "careless.xml").find(".//testcase[failure]")
    assert case is not None
    assert case.attrib["name"] == "R1-grant (MUST, section 4.1.1)"


def connect(
    program: Program, setting: int, queue: int, target: str
) -> tuple[Ended, dict[str, dict[str, Any]]]:
    """Checks a server over the loopback device of a new network namespace."""
    site = (sys.executable, str(HERE / "fast_open_site.py"), str(setting), str(queue))
    ended = program(
        "check", "--connect", target, "--json", wrap=("unshare", "--map-root-user", "--net", *site)
    )
    rows = json.loads(ended.out)["rows"] if ended.out else []
    return ended, {row["id"]: row for row in rows}


@pytest.mark.ordinary_user
@pytest.mark.parametrize("target", ["127.0.0.1:8080", "[::1]:8080"])
def test_a_server_is_checked_over_the_network(target: str, program: Program) -> None:
    ended, rows = connect(program, 0x3, 64, target)
    assert ended.code == 0, ended.err
    assert rows.pop("R18-keys")["seen"].endswith(
        "of 8 connections with a cookie 8 had their data acknowledged."
    )
    assert {name: row["verdict"] for name, row in rows.items()} == dict.fromkeys(
        ("R1-grant", "syn-data-no-option", "zero-payload-server", "R14-together"), "holds"
    )
    assert rows["R14-together"]["seen"].startswith(
        "Data in the SYN: acknowledged, acknowledged, acknowledged."
    )
    assert json.loads(ended.out)["connect"]["port"] == 8080


def test_a_server_that_takes_data_without_a_cookie_is_found_over_the_network(program: Program) -> None:
    ended, rows = connect(program, 0x203, 64, "127.0.0.1:8080")
    assert ended.code == 1, ended.err
    assert {rows[name]["verdict"] for name in ("R1-grant", "syn-data-no-option")} == {"deviates"}
    assert rows["syn-data-no-option"]["seen"].startswith("Data in a SYN without option: acknowledged;")


@pytest.fixture
def plain_site() -> Iterator[str]:
    """The address of an HTTP server on this machine's loopback that does not use Fast Open."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def test_a_server_without_fast_open_does_not_pass_over_the_network(program: Program, plain_site: str) -> None:
    ended = program("check", "--connect", plain_site, "--out", "remote")
    assert ended.code == 1
    assert "deviates in 1 row: R1-grant\n" in ended.err
    rows = rows_of(program.folder / "remote")
    assert rows["R1-grant"]["seen"].startswith("The kernel asked twice and got no cookie")
    assert {rows[name]["verdict"] for name in ("R14-together", "R18-keys")} == {"not applicable"}
    assert not (program.folder / "remote" / "captures").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("R99",), 2, "R99: there is no such row"),
        (("--port", "80"), 2, "--port requires --server"),
        (("--server", "sleep 1", "--port", "70000"), 2, "port: 70000 is not a port"),
        (("--server", "no-such-server"), 2, "server: cannot find no-such-server"),
        (("--server", "'"), 2, 'server: "\'": No closing quotation'),
        (("--server", "sh -c 'echo no config; exit 3'"), 1, "server: sh ended with exit code 3 and did not"),
        (("--out", "/etc/hosts"), 2, "out: /etc/hosts is not a folder"),
        (("--only", "R5,,R6"), 2, "only: 'R5,,R6' has a comma too many"),
        (("--ip", "5"), 2, "ip: '5' is not a version of IP"),
        (
            ("--junit", "nowhere/check.xml"),
            2,
            "junit: nowhere/check.xml is in nowhere, which is not a folder",
        ),
        (("--tap", "/"), 2, "tap: / is a folder"),
        (("--list", "--out", "here"), 2, "--list examines nothing and writes no file"),
        (("--connect", "http://127.0.0.1/"), 2, "connect: 'http://127.0.0.1/' is not HOST:PORT"),
        (("--connect", "::1"), 2, "connect: '::1' is not HOST:PORT"),
        (("--connect", "127.0.0.1:99999"), 2, "connect: '127.0.0.1:99999' is not HOST:PORT"),
        (("--connect", "127.0.0.1:80", "--ip", "6"), 2, "connect: 127.0.0.1 has no address of IPv6"),
        (("--connect", "127.0.0.1:80", "--server", "sleep 1"), 2, "--server and --connect name two servers"),
        (("R12-invalid", "--connect", "127.0.0.1:80"), 2, "R12-invalid needs raw packets"),
        (("--connect", "127.0.0.1:9"), 1, "127.0.0.1:9: Connection refused"),
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
    assert "stopped before every row was checked" in said
    assert until(lambda: program.processes() == [])

"""`firstflight exec`: any program runs in the laboratory, on the caller's streams, and is recorded."""

import json
import sys
from typing import Any

import host
import pcapng
import pytest
from program import Ended, Program, until

RTT_MS = 100
DOCUMENT = "http://en.wikipedia.org/wiki/Transmission_Control_Protocol"
DOCUMENT_BYTES = 41_358
FETCHES = {
    "curl": ("curl", "-sS", "-o", "/dev/null", DOCUMENT),
    "wget2": ("wget2", "--no-config", "--no-tcp-fastopen", "-q", "-O", "/dev/null", DOCUMENT),
    "python3": (sys.executable, "-c", f"from urllib.request import urlopen; urlopen('{DOCUMENT}').read()"),
    "bash": ("bash", "-c", f"curl -sS {DOCUMENT} | wc -c"),
}


def run(program: Program, *arguments: str, wrap: tuple[str, ...] = ()) -> tuple[Ended, dict[str, Any]]:
    """Runs `firstflight exec` once; returns how it ended and the record that it wrote."""
    ended = program("exec", "--rtt", str(RTT_MS), "--json", "record.json", *arguments, wrap=wrap)
    file = program.folder / "record.json"
    return ended, json.loads(file.read_text()) if file.exists() else {}


@pytest.mark.parametrize("mode", ["tcp", "tfo"])
@pytest.mark.parametrize(
    "name", [pytest.param("curl", marks=pytest.mark.ordinary_user), "wget2", "python3", "bash"]
)
def test_a_program_uses_fast_open_when_the_mode_says_so_and_only_then(
    name: str, mode: str, program: Program
) -> None:
    ended, record = run(program, "--mode", mode, "--pages", "wikipedia", "--", *FETCHES[name])
    assert ended.code == 0, ended.err
    assert (record["requests"], record["unmatched_requests"], record["proof"]["ok"]) == (1, 0, True)
    [connection] = record["connections"]
    used = mode == "tfo"
    assert connection["origin"] == "http://en.wikipedia.org"
    assert connection["cookie"] == ("sent" if used else "none")
    assert (connection["syn_payload_bytes"] > 0, connection["syn_data_acked"]) == (used, used)
    assert record["proof"]["counters"]["active"] == record["proof"]["tcp_info"]["syn_data"] == int(used)
    assert f"data in the SYN: {int(used)} offered, {int(used)} accepted" in ended.err


WITHOUT_HOSTS = (
    *("unshare", "--map-root-user", "--mount", "sh", "-c"),
    'cp -R /etc settings 2>/dev/null; rm -f settings/hosts && mount --bind settings /etc && exec "$@"',
    "sh",
)
"""Runs a program on a system without `/etc/hosts`, such as a minimal Debian 12."""


@pytest.mark.ordinary_user
def test_names_resolve_in_the_lab_where_the_system_has_no_hosts_file(program: Program) -> None:
    before = host.state()
    name = "import os, socket; print(socket.gethostbyname('en.wikipedia.org'), len(os.listdir('/etc')))"
    fetch = ("--pages", "wikipedia", "--", sys.executable, "-c", name)
    ended, _ = run(program, *fetch, wrap=WITHOUT_HOSTS)
    assert ended.code == 0, ended.err
    address, settings = ended.out.split()
    assert address.startswith("198.19.")
    outside = len(list((program.folder / "settings").iterdir()))
    assert int(settings) == outside + 1, "everything else of /etc is there"
    assert host.state() == before


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 7", 7), ("exit 2", 2), ("kill -TERM $$", 143), ("kill -KILL $$", 137)],
)
def test_the_exit_code_is_the_programs(script: str, code: int, program: Program) -> None:
    assert run(program, "--", "sh", "-c", script)[0].code == code


def test_what_is_under_way_when_a_program_ends_is_seen_through_without_waiting_for_the_path(
    program: Program,
) -> None:
    """After the program has ended, the relay delivers packets in flight without waiting for the path's delay.

    Apart from the program's own time, the relay needs time for priming and for the end, less than half an
    RTT.
    """
    rtt_ms, sent = 3000, 5000
    flags = ("--rtt", str(rtt_ms), "--down", "unlimited", "--up", "unlimited", "--mode", "tcp")
    send = (
        "import os, socket; host, port = os.environ['FIRSTFLIGHT_SINK'].split(':'); "
        f"socket.create_connection((host, int(port))).sendall(bytes({sent}))"
    )
    for argv, connections in ((("true",), 0), ((sys.executable, "-c", send), 1)):
        ended, record = run(program, *flags, "--", *argv)
        assert ended.code == 0, ended.err
        assert len(record["connections"]) == connections
        assert record["bytes_up"] >= connections * sent
        assert record["relay"]["packets"] >= connections * 6
        assert record["relay"]["wall_ms"] < record["elapsed_ms"] + rtt_ms / 2


def test_a_program_that_is_not_there_or_is_none_ends_as_in_a_shell(program: Program) -> None:
    missing, _ = run(program, "--", "no-such-program")
    assert missing.code == 127
    assert "error: cannot run no-such-program" in missing.err
    assert "hint:" in missing.err
    assert run(program, "--", "/etc/hosts")[0].code == 126


@pytest.mark.ordinary_user
def test_streams_arguments_and_folder_are_the_callers(program: Program) -> None:
    pipe = ("sh", "-c", 'echo from the caller | "$@"', "sh")
    ended, _ = run(program, "--", "sh", "-c", 'cat; pwd; echo "$1" >&2', "sh", "a  b", wrap=pipe)
    assert ended.out == f"from the caller\n{program.folder}\n"
    assert ended.err.startswith("a  b\n")


def test_flags_behind_the_program_are_the_programs(program: Program) -> None:
    assert program("exec", "--quiet", "sh", "-c", "exit 4").code == 4


@pytest.mark.ordinary_user
def test_the_echo_service_answers_after_the_round_trip_asked_for(program: Program) -> None:
    script = """
import os, socket, time
host, port = os.environ["FIRSTFLIGHT_ECHO"].split(":")
probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
times = []
for _ in range(5):
    begun = time.monotonic()
    probe.sendto(b"?", (host, int(port)))
    probe.recv(8)
    times.append(time.monotonic() - begun)
print(min(times) * 1000)
"""
    ended, record = run(program, "--", sys.executable, "-c", script)
    assert RTT_MS <= float(ended.out) < 1.5 * RTT_MS, record["relay"]


def test_source_and_sink_show_the_rates(program: Program) -> None:
    script = """
import os, socket, time
def service(name):
    host, port = os.environ[name].split(":")
    connection = socket.create_connection((host, int(port)))
    connection.send(b".")
    return connection
source, begun, received = service("FIRSTFLIGHT_SOURCE"), time.monotonic(), 0
while received < 400_000:
    received += len(source.recv(65_536))
print(received * 8 / (time.monotonic() - begun))
sink = service("FIRSTFLIGHT_SINK")
sink.sendall(bytes(20_000))
"""
    ended, record = run(program, "--down", "4mbit", "--", sys.executable, "-c", script)
    assert ended.code == 0, ended.err
    assert 2e6 < float(ended.out) < 4e6
    assert [row["origin"] for row in record["connections"]] == ["198.19.255.254:19", "198.19.255.254:9"]


@pytest.mark.ordinary_user
def test_nothing_outside_can_be_named_or_reached(program: Program) -> None:
    before = host.state()
    script = """
import errno, socket
try:
    socket.getaddrinfo("www.example.org", 80)
except socket.gaierror as error:
    print("no name")
for address in ("192.0.2.1", "10.0.0.1"):
    with socket.socket() as probe:
        print(errno.errorcode[probe.connect_ex((address, 80))])
print(open("/etc/resolv.conf").read().count("nameserver"))
"""
    ended, _ = run(program, "--pages", "wikipedia", "--", sys.executable, "-c", script)
    assert ended.out.split("\n")[:4] == ["no name", "ENETUNREACH", "ENETUNREACH", "0"]
    assert host.state() == before


def test_what_no_page_has_is_a_warning_that_names_it(program: Program) -> None:
    ended, record = run(
        program, "--pages", "wikipedia", "--", "curl", "-s", "-o", "/dev/null", f"{DOCUMENT}/nowhere"
    )
    assert record["unmatched"] == [f"{DOCUMENT}/nowhere"]
    assert f"warning: no page answers 1 request: {DOCUMENT}/nowhere" in ended.err
    assert "hint: name the page that has it with --pages" in ended.err


def test_several_pages_are_served_at_once(program: Program) -> None:
    urls = (DOCUMENT, "http://www.amazon.com/")
    outputs = ("-o", "/dev/null") * len(urls)
    _, record = run(
        program, "--pages", "wikipedia", "--pages", "amazon", "--", "curl", "-sS", *outputs, *urls
    )
    assert (record["requests"], record["unmatched_requests"]) == (2, 0)


@pytest.mark.ordinary_user
def test_what_a_program_leaves_running_ends_with_it(program: Program) -> None:
    ended, _ = run(program, "--", "sh", "-c", "sleep 1000 & (sleep 1000 &) ; setsid sleep 1000 & exit 3")
    assert ended.code == 3
    assert program.processes() == []


def test_orphans_are_reaped(program: Program) -> None:
    """A hundred processes end after their parents have ended.

    The laboratory reaps them all: no zombie remains.
    """
    script = """
import os, sys, time
for _ in range(100):
    if os.fork() == 0:
        os.fork() or time.sleep(0.05)
        os._exit(0)
    os.wait()
def others():
    processes = {int(process) for process in os.listdir("/proc") if process.isdigit()}
    return processes - {1, os.getpid()}
deadline = time.monotonic() + 30
while others() and time.monotonic() < deadline:
    time.sleep(0.01)
sys.exit(len(others()))
"""
    assert run(program, "--", sys.executable, "-c", script)[0].code == 0


def test_connections_that_are_reset_before_they_are_accepted_are_proved_too(program: Program) -> None:
    """After a reset a server's socket no longer knows its peer's address; `accept` still returns it."""
    script = """
import os, socket, struct
host, _, port = os.environ["FIRSTFLIGHT_SINK"].rpartition(":")
for _ in range(200):
    with socket.create_connection((host, int(port))) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
"""
    ended = program(
        *("exec", "--rtt", "1", "--down", "unlimited", "--up", "unlimited", "--mode", "tcp"),
        *("--json", "record.json", "--", sys.executable, "-c", script),
    )
    record = json.loads((program.folder / "record.json").read_text())
    assert (ended.code, len(record["connections"]), record["proof"]["disagreements"]) == (0, 200, [])


@pytest.mark.ordinary_user
def test_killed_at_once_it_leaves_nothing_behind(program: Program) -> None:
    process = program.start("exec", "--", "sleep", "1000")
    assert until(lambda: any(entry.name == "sleep" for entry in program.processes()))
    process.kill()
    process.communicate()
    assert until(lambda: program.processes() == [])


def test_a_capture_shows_the_request_in_the_syn(program: Program) -> None:
    ended, _ = run(program, "--capture", "all.pcapng", "--pages", "wikipedia", "--", *FETCHES["curl"])
    assert ended.code == 0, ended.err
    packets = pcapng.read(program.folder / "all.pcapng")
    [opened] = [packet for packet in packets if packet.syn and not packet.ack]
    assert opened.payload.startswith(b"GET /wiki/")


def test_cold_cookies_are_asked_for_first(program: Program) -> None:
    script = f"curl -sS -o /dev/null {DOCUMENT}; curl -sS -o /dev/null {DOCUMENT}"
    _, record = run(program, "--cookies", "cold", "--pages", "wikipedia", "--", "sh", "-c", script)
    assert [row["cookie"] for row in record["connections"]] == ["requested", "sent"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--rtt", "20,100"), "rtt: exec takes one value"),
        (("--mode", "tcp,tfo"), "mode: exec takes one value"),
        (("--mode", "early-data", "--cookies", "stale"), "cookies: exec cannot bring"),
        (("--capture", "nowhere/all.pcapng"), "nowhere/all.pcapng: cannot be written"),
        (("--json", "."), ".: cannot be written"),
        (("--pages", "no-such-page"), "no-such-page"),
    ],
)
def test_a_wrong_call_starts_nothing(arguments: tuple[str, ...], message: str, program: Program) -> None:
    ended = program("exec", *arguments, "--", "touch", "started")
    assert ended.code == 2
    assert f"error: {message}" in ended.err
    assert "hint:" in ended.err
    assert not (program.folder / "started").exists()


def test_quiet_says_nothing_of_its_own(program: Program) -> None:
    ended = program("exec", "--quiet", "--", "true")
    assert (ended.code, ended.out, ended.err) == (0, "", "")

"""`firstflight prove`: programs that request Fast Open in each way, and reasons why a SYN has no data."""

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from program import Ended, Program

RTT_MS = "20"
VISIT = """
import socket, sys
way, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
request = b"GET / HTTP/1.0\\r\\nHost: http.test\\r\\n\\r\\n"
stream = socket.socket()
if way == "flag":
    try:
        stream.sendto(request, socket.MSG_FASTOPEN, (address, port))
    except OSError:
        stream.connect((address, port))
        stream.sendall(request)
else:
    if way == "option":
        try:
            stream.setsockopt(socket.IPPROTO_TCP, 30, 1)
        except OSError:
            pass
    stream.connect((address, port))
    if way == "late":
        try:
            stream.setsockopt(socket.IPPROTO_TCP, 30, 1)
        except OSError:
            pass
    stream.sendall(request)
stream.settimeout(1)
while stream.recv(65536):
    pass
"""
HTTP = ("{http_ip}", "{http_port}")
STATIC = r"""
#include <arpa/inet.h>
#include <unistd.h>
int main(int count, char **words) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(80)};
    char answer[4096];
    int stream = socket(AF_INET, SOCK_STREAM, 0);
    if (count < 2 || !inet_aton(words[1], &to.sin_addr)) return 2;
    if (connect(stream, (struct sockaddr *)&to, sizeof to)) return 1;
    if (write(stream, "GET / HTTP/1.0\r\n\r\n", 18) != 18) return 1;
    while (read(stream, answer, sizeof answer) > 0);
    return 0;
}
"""


def prove(program: Program, *arguments: str) -> tuple[Ended, dict[str, Any]]:
    """Runs `firstflight prove` once at a short RTT; returns how it ended and the JSON that it printed."""
    ended = program("prove", "--rtt", RTT_MS, "--json", *arguments)
    return ended, json.loads(ended.out) if ended.out else {}


def by_way(way: str, *target: str) -> tuple[str, ...]:
    return ("--", sys.executable, "-c", VISIT, way, *(target or HTTP))


def reasons(document: dict[str, Any], mechanism: str = "tfo") -> dict[int, list[str]]:
    """The reason codes for one mechanism, by visit."""
    found: dict[int, list[str]] = {}
    for connection in document["connections"]:
        for finding in connection["findings"]:
            if finding["mechanism"] == mechanism:
                found.setdefault(connection["visit"], []).append(finding["reason"])
    return found


@pytest.mark.parametrize(
    ("way", "asked", "first", "second"),
    [
        pytest.param("none", None, "did-not-ask", "did-not-ask", marks=pytest.mark.ordinary_user),
        pytest.param("flag", "MSG_FASTOPEN", "no-cookie-yet", "used", marks=pytest.mark.ordinary_user),
        ("option", "TCP_FASTOPEN_CONNECT", "no-cookie-yet", "used"),
        ("late", None, "asked-too-late", "asked-too-late"),
    ],
)
def test_how_a_program_asks_is_seen_and_the_second_visit_has_the_cookie_of_the_first(
    way: str, asked: str | None, first: str, second: str, program: Program
) -> None:
    ended, document = prove(program, "--expect", "tfo", *by_way(way))
    assert reasons(document) == {1: [first], 2: [second]}, ended.err
    assert ended.code == (0 if second == "used" else 1)
    assert document["unmet"] == ([] if second == "used" else ["tfo"])
    assert document["proof"]["ok"] is True
    for visit in document["visits"]:
        [socket] = visit["watched"]["sockets"]
        assert (socket["asked"], socket["asked_late"], socket["linkage"]) == (asked, way == "late", "dynamic")
    assert [connection["socket"] for connection in document["connections"]] == [0, 0]


@pytest.mark.parametrize(
    ("conditions", "way", "reason"),
    [
        (("--sysctl", "0"), "flag", "sysctl-off"),
        (("--sysctl", "0"), "option", "sysctl-off"),
        (("--cookies", "stale"), "option", "cookie-refused"),
        (("--middlebox", "black-hole"), "option", "black-hole"),
        (("--middlebox", "strip-data"), "flag", "data-not-acknowledged"),
    ],
)
def test_kernel_server_and_path_are_told_apart(
    conditions: tuple[str, ...], way: str, reason: str, program: Program
) -> None:
    ended, document = prove(program, *conditions, *by_way(way))
    assert reasons(document)[2] == [reason]
    # Behind a black hole the program gives up after its own time limit and fails.
    assert ended.code == (1 if reason == "black-hole" else 0)


def test_a_static_program_is_watched_and_called_static(program: Program) -> None:
    source, binary = program.folder / "get.c", program.folder / "get"
    source.write_text(STATIC)
    subprocess.run(["cc", "-static", "-o", binary, source], check=True)
    ended, document = prove(program, "--", str(binary), "{http_ip}")
    assert ended.code == 0, ended.err
    assert reasons(document) == {1: ["static-binary"], 2: ["static-binary"]}


def hello(key_share: bytes) -> bytes:
    """A ClientHello of TLS 1.3 with one key share of X25519MLKEM768."""

    def sized(width: int, field: bytes) -> bytes:
        return len(field).to_bytes(width, "big") + field

    share = b"\x11\xec" + sized(2, key_share)
    extensions = {
        0: sized(2, b"\0" + sized(2, b"https.test")),
        10: sized(2, b"\x11\xec"),
        13: sized(2, b"\x04\x03\x08\x04"),
        43: sized(1, b"\x03\x04"),
        51: sized(2, share),
    }
    coded = b"".join(kind.to_bytes(2, "big") + sized(2, data) for kind, data in extensions.items())
    head = b"\x03\x03" + bytes(32) + sized(1, bytes(32)) + sized(2, b"\x13\x01") + b"\x01\0"
    body = head + sized(2, coded)
    return b"\x16\x03\x01" + sized(2, b"\x01" + sized(3, body))


@pytest.mark.parametrize(("padding", "reason"), [(1_600, "hello-too-long"), (1_216, "used")])
def test_a_post_quantum_client_hello_is_in_the_syn_as_far_as_there_is_room(
    padding: int, reason: str, program: Program
) -> None:
    (program.folder / "hello").write_bytes(hello(bytes(padding)))
    script = (
        "import socket, sys; stream = socket.socket(); "
        "hello = open('hello', 'rb').read(); "
        "sent = stream.sendto(hello, socket.MSG_FASTOPEN, (sys.argv[1], 443)); "
        "stream.sendall(hello[sent:]); stream.recv(9)"
    )
    _, document = prove(program, "--", sys.executable, "-c", script, "{https_ip}")
    assert reasons(document)[2] == [reason]
    assert reasons(document, "early-data")[2] == ["no-resumption"]
    assert document["connections"][1]["client_hello"]["is_post_quantum"] is True


TICKET = """
talk() {{ openssl s_client -quiet -ign_eof -connect https.test:443 -CAfile {{ca}} "$@"; }}
request='GET / HTTP/1.0\\r\\n\\r\\n'
if [ -e ticket ]; then
    {second}
else
    printf "$request" | talk -sess_out ticket
fi
"""
EARLY = 'printf "$request" > request; talk -sess_in ticket -early_data request < /dev/null'
LATE = 'printf "$request" | talk -sess_in ticket'
FORGETFUL = 'printf "$request" | talk'


@pytest.mark.parametrize(
    ("second", "cookies", "reason"),
    [
        (EARLY, "warm", "used"),
        (EARLY, "stale", "early-data-rejected"),
        (LATE, "warm", "early-data-not-sent"),
        (LATE, "no-early-data", "ticket-without-early-data"),
        (FORGETFUL, "warm", "no-ticket-kept"),
    ],
)
def test_what_became_of_early_data_of_openssl(
    second: str, cookies: str, reason: str, program: Program
) -> None:
    script = TICKET.format(second=second)
    ended, document = prove(program, "--cookies", cookies, "--", "sh", "-c", script)
    assert reasons(document, "early-data") == {1: ["no-ticket-yet"], 2: [reason]}, ended.err


def test_a_program_that_never_connects_is_told_where_it_tried(program: Program) -> None:
    elsewhere = "import socket; socket.socket().connect_ex(('203.0.113.9', 80))"
    ended = program("prove", "--", sys.executable, "-c", elsewhere)
    assert ended.code == 1
    assert "opened no connection to the laboratory's servers; it tried 203.0.113.9:80" in ended.err
    assert "hint: let it visit {http}" in ended.err
    assert program("prove", "--", "true").code == 1


def test_what_a_program_leaves_running_is_named_and_stopped(program: Program) -> None:
    script = "sleep 60 & exec " + " ".join(f"'{word}'" for word in by_way("flag")[1:])
    ended, document = prove(program, "--linger", "0.2", "--", "sh", "-c", script)
    assert (ended.code, reasons(document)[2]) == (0, ["used"])
    assert "left 1 process running (sleep)" in ended.err
    assert document["visits"][0]["elapsed_ms"] < 60_000


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (("--", "no-such-program"), "cannot find no-such-program"),
        (("--host", "not a name", "--", "true"), "host: 'not a name' is not a name"),
        (("--cookies", "moved", "--", "true"), "cookies: prove cannot bring"),
        (("--expect", "udp", "--", "true"), "expect: 'udp' is not a valid Mechanism"),
        (("--server", "--", "true"), "--server requires --port"),
        (("--port", "80", "--", "true"), "--port requires --server"),
        (("--server", "--port", "80", "--ip", "6", "--", "true"), "--ip has no effect with --server"),
    ],
)
def test_a_wrong_call_is_refused_before_anything_starts(
    call: tuple[str, ...], complaint: str, program: Program
) -> None:
    ended = program("prove", *call)
    assert ended.code == 2
    assert complaint in ended.err
    assert "hint: " in ended.err


WATCHED_ALREADY = """
import ctypes, os, struct, sys
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 135), (0x06, 0, 0, 0x7FC00000), (0x06, 0, 0, 0x7FFF0000)]
coded = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
listener = libc.syscall(317, 1, 8, ctypes.byref(Filter(len(steps), ctypes.addressof(coded))))
os.set_inheritable(listener, True)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Runs a program under a seccomp listener for `personality` (system call 135).

The kernel allows one listener only, so `prove` cannot add its own.
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter has the numbers of x86-64")
def test_where_system_calls_cannot_be_watched_nothing_is_guessed(program: Program) -> None:
    wrap = (sys.executable, "-c", WATCHED_ALREADY)
    ended = program("prove", "--rtt", RTT_MS, "--json", *by_way("none"), wrap=wrap)
    assert reasons(json.loads(ended.out))[2] == ["calls-not-seen"]
    assert "the program's system calls could not be watched" in ended.err


SERVER = """
import socket, sys
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if "fast-open" in sys.argv:
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 8)
listener.bind(("", 8000))
listener.listen()
while True:
    stream, _ = listener.accept()
    stream.recv(65536)
    stream.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\n")
    stream.close()
"""


@pytest.mark.parametrize(
    ("words", "sysctl", "reason"),
    [
        (("fast-open",), "3", "used"),
        ((), "3", "server-did-not-ask"),
        (("fast-open",), "1", "sysctl-off"),
    ],
)
def test_a_server_takes_data_in_the_syn_or_gets_the_reason(
    words: tuple[str, ...], sysctl: str, reason: str, program: Program
) -> None:
    serve = ("--server", "--port", "8000", "--sysctl", sysctl, "--", sys.executable, "-c", SERVER, *words)
    ended, document = prove(program, *serve)
    assert [finding["reason"] for finding in document["findings"]] == [reason], ended.err
    assert (ended.code, document["speaks_tls"]) == (0, False)
    assert document["openings"][-1]["syn_data_acked"] is (reason == "used")


def test_a_server_with_tls_is_asked_for_early_data(program: Program, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=server.test"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", "-x509", *made, *files], check=True, capture_output=True)
    talk = f"openssl s_server -accept 8443 -key {key} -cert {certificate} -quiet"
    for more, reason in (("", "ticket-without-early-data"), ("-early_data", "used")):
        # `openssl s_server` sends to its client what it reads from standard input.
        serve = ("sh", "-c", f"while sleep 0.05; do echo hello; done | {talk} {more}")
        ended, document = prove(program, "--server", "--port", "8443", "--", *serve)
        found = {finding["mechanism"]: finding["reason"] for finding in document["findings"]}
        assert found == {"tfo": "server-did-not-ask", "early-data": reason}, ended.err

"""IPv6 with middleboxes, cookie states, Chromium and other programs: loads are proved as over IPv4."""

import pcapng
import pytest
from program import Program
from small_pages import assert_ok, fan, load
from synth_site import program as installed

from firstflight.engines.clients.chromium.browser import find_browser
from firstflight.engines.clients.chromium.client import Chromium
from firstflight.engines.emulate import Emulator
from firstflight.engines.simulate import Simulator
from firstflight.model.path import parse_middlebox
from firstflight.pages import open_pages

DOCUMENT = "http://en.wikipedia.org/wiki/Transmission_Control_Protocol"
ORIGINS = "2001:2:0:1::"
MIDDLEBOXES = ("drop-data", "strip-data", "drop-option", "strip-option", "reset")


@pytest.mark.parametrize("middlebox", MIDDLEBOXES)
def test_middleboxes_change_packets_of_ipv6_alike_on_both_clocks(middlebox: str, emulator: Emulator) -> None:
    box = parse_middlebox(middlebox)
    ends = []
    for engine in (emulator, Simulator()):
        record = load(engine, fan(2), "tfo", 20.0, ip="6", middlebox=box)
        openings = [
            (row["syn_payload_bytes"], row["syn_data_acked"], row["syn_retransmits"])
            for row in record["connections"]
        ]
        ends.append((record["load"]["error"], sorted(openings)))
        assert openings
        # The middlebox resets the connection; the client then fails instead of connecting again.
        if middlebox == "reset":
            assert "Connection refused" in str(record["load"]["error"])
        else:
            assert_ok(record)
    assert ends[0] == ends[1]


@pytest.mark.parametrize("cookies", ["cold", "stale", "backup", "moved", "nat", "pool:3", "cookieless"])
def test_every_cookie_state_is_proved_over_ipv6(cookies: str, emulator: Emulator) -> None:
    record = load(emulator, fan(2), "tfo", 20.0, ip="6", cookies=cookies)
    assert_ok(record)


@pytest.mark.parametrize("mode", ["tcp", "tfo"])
def test_chromium_loads_a_page_over_ipv6(mode: str, emulator: Emulator) -> None:
    browser = Emulator(clients={"chromium": Chromium(find_browser(installed("chromium")))})
    [recorded] = open_pages(["wikipedia"])
    record = load(browser, recorded, mode, 20.0, client="chromium", ip="6")
    assert_ok(record)
    assert record["load"]["ip"] == "6"
    openings = {(row["syn_payload_bytes"] > 0, row["syn_data_acked"]) for row in record["connections"]}
    assert openings == {(mode == "tfo", mode == "tfo")}


def test_a_program_finds_hosts_at_addresses_of_ipv6_alone(program: Program) -> None:
    asks = f"getent ahosts en.wikipedia.org && curl -sS -o /dev/null {DOCUMENT}"
    flags = ("--ip", "6", "--pages", "wikipedia", "--capture", "all.pcapng")
    ended = program("exec", "--rtt", "20", *flags, "--", "sh", "-c", asks)
    assert ended.code == 0, ended.err
    addresses = {line.split()[0] for line in ended.out.splitlines()}
    assert addresses
    assert all(address.startswith(ORIGINS) for address in addresses)
    packets = pcapng.read(program.folder / "all.pcapng")
    [opened] = [packet for packet in packets if packet.syn and not packet.ack]
    assert opened.destination in addresses
    assert opened.payload.startswith(b"GET /wiki/")
    assert "1 offered, 1 accepted" in ended.err

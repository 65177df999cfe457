"""Programs that are not ours load over IPv6, with the same proofs; what a capture has of it."""

import shutil
from pathlib import Path

import pytest
from program import Program
from small_pages import assert_ok, load
from synth_site import program as installed

from firstflight.engines.clients.chromium.browser import find_browser
from firstflight.engines.clients.chromium.client import Chromium
from firstflight.engines.emulate import Emulator
from firstflight.pages import open_pages

PATH = {"down_bps": 4_000_000, "up_bps": 256_000}


@pytest.mark.parametrize("mode", ["tcp", "tfo"])
def test_chromium_loads_a_page_over_ipv6(mode: str, emulator: Emulator) -> None:
    browser = Emulator(clients={"chromium": Chromium(find_browser(installed("chromium")))})
    [recorded] = open_pages(["wikipedia"])
    record = load(browser, recorded, mode, 20.0, client="chromium", ip="6", **PATH)
    assert_ok(record)
    assert record["load"]["ip"] == "6"
    openings = {(row["syn_payload_bytes"] > 0, row["syn_data_acked"]) for row in record["connections"]}
    assert openings == {(mode == "tfo", mode == "tfo")}


@pytest.mark.skipif(not shutil.which("curl"), reason="no curl here")
def test_a_program_in_the_laboratory_finds_hosts_at_addresses_of_ipv6_alone(
    tmp_path: Path, program: Program
) -> None:
    capture = tmp_path / "packets.pcapng"
    url = "http://en.wikipedia.org/"
    asks = f"getent ahosts en.wikipedia.org; curl -s -o /dev/null -w '%{{remote_ip}}' {url}; echo; ip route"
    flags = ("--ip", "6", "--pages", "wikipedia", "--capture", str(capture))
    done = program("exec", *flags, "--", "sh", "-c", asks)
    addresses = [line.split()[0] for line in done.out.splitlines()]
    assert addresses
    assert {address.rpartition(":")[0] for address in addresses} == {"2001:2:0:1:"}
    assert "1 offered, 1 accepted" in done.err

"""Which modes a curl supports, according to `curl -V`, and the options that it gets for each mode."""

from pathlib import Path

import pytest

from firstflight.engines.clients.command import COMMANDS, VISIT, CurlBuild, Way, check_tickets, find_program
from firstflight.errors import UsageError
from firstflight.model.treatment import MODES
from firstflight.pages import Page, open_pages, under

OLD = "curl 7.88.1 (x86_64-pc-linux-gnu) libcurl/7.88.1 OpenSSL/3.0.16 zlib/1.2.13\nFeatures: HTTP2 SSL\n"
NEW = "curl 8.23.0 (x86_64-pc-linux-gnu) libcurl/8.23.0 OpenSSL/3.6.5 ngtcp2/1.24.0\nFeatures: HTTP3 SSL\n"
GNUTLS = "curl 8.11.0 (x86_64-pc-linux-gnu) libcurl/8.11.0 GnuTLS/3.8.9 zlib/1.3.1\nFeatures: HTTP2 SSL\n"
OTHER = "curl 8.23.0 (x86_64-pc-linux-gnu) libcurl/8.23.0 rustls-ffi/0.15\nFeatures: HTTP3 SSL\n"


def build(folder: Path, said: str) -> CurlBuild:
    """A program that prints `said` as its version."""
    program = folder / "curl"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{said}END\n")
    program.chmod(0o755)
    return CurlBuild.of(str(program))


@pytest.fixture(scope="module")
def wikipedia() -> Page:
    """A page of four hosts."""
    [loaded] = open_pages(("wikipedia",))
    return under("https", loaded).page


@pytest.mark.parametrize(
    ("said", "mode", "error"),
    [
        (OLD, "resumption", None),
        (OLD, "tls12", None),
        (OLD, "early-data", r"curl 7\.88\.1 with OpenSSL has no early data"),
        (OLD, "quic", r"curl 7\.88\.1 was built without HTTP/3, which quic needs"),
        (GNUTLS, "tfo+early-data", None),
        (GNUTLS, "quic-0rtt", r"built without HTTP/3"),
        (OTHER, "quic", None),
        (OTHER, "quic-0rtt", "with its TLS library has no early data"),
        (NEW, "early-data", None),
        (NEW, "quic-0rtt", None),
    ],
)
def test_what_a_curl_cannot_do_is_refused_with_what_it_lacks(
    said: str, mode: str, error: str | None, tmp_path: Path
) -> None:
    curl = build(tmp_path, said)
    if error is None:
        curl.check(MODES[mode])
        return
    with pytest.raises(UsageError, match=error) as refused:
        curl.check(MODES[mode])
    assert "--program PATH" in refused.value.hint


def test_what_is_no_curl_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not say which curl it is"):
        build(tmp_path, "GNU Wget 1.21\n")
    with pytest.raises(UsageError, match=r"program: .*/curl2 cannot be run"):
        find_program("curl", str(tmp_path / "curl2"))


@pytest.mark.parametrize("mode", MODES)
def test_curl_is_told_what_a_mode_needs(mode: str, wikipedia: Page) -> None:
    told = COMMANDS["curl"]("curl", wikipedia, Way(mode=MODES[mode])).input.splitlines()
    assert ("http3-only" in told, "http1.1" in told) == (MODES[mode].quic, not MODES[mode].quic)
    assert ("tls-earlydata" in told) is MODES[mode].early_data
    assert ('tls-max = "1.2"' in told) is (mode == "tls12")
    assert "parallel" in told


def test_curl_first_visits_each_host_and_then_opens_other_connections(wikipedia: Page) -> None:
    way = Way(mode=MODES["early-data"], visits=True, in_turn=True)
    told = COMMANDS["curl"]("curl", wikipedia, way).input.splitlines()
    border = told.index("next")
    visits, load = told[:border], told[border + 1 :]
    assert [line for line in visits if line.startswith("url")] == [
        f'url = "{origin}{VISIT}"' for origin in wikipedia.origins
    ]
    assert sum(line.startswith("url") for line in load) == len(wikipedia.resources)
    assert ("ipv4" in visits, "ipv4" in load) == (False, True)
    assert "parallel" not in told
    # curl uses a ticket only in a transfer with the same TLS options as the one that received it.
    for line in ("tls-earlydata", "http1.1"):
        assert line in visits
        assert line in load


def test_a_page_of_more_hosts_than_curl_keeps_tickets_of_is_refused() -> None:
    fields = {"kind": "document", "mime": "text/html", "request_bytes": 1, "header_bytes": 1, "body_bytes": 1}

    def of(hosts: int) -> Page:
        resources = [
            {
                **fields,
                "url": f"https://o{host}.test/",
                **({"initiator": {"resource": 0, "via": "parser", "at_byte": 1}} if host else {}),
            }
            for host in range(hosts)
        ]
        return Page.from_fields({"name": "many", "resources": resources})

    check_tickets(of(25))
    with pytest.raises(UsageError, match="26 https origins, and curl keeps tickets of 25"):
        check_tickets(of(26))

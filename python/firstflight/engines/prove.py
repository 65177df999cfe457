"""Runs a program of the user twice against the laboratory's own servers and reports what crossed the wire."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path as FilePath

from firstflight.engines.lab import CA_FILE, LATE_BOUND_MS, Lab, may_keep_awake
from firstflight.model.path import Path
from firstflight.results.first_flights import ProveFacts, ServerFacts

HTTP_HOST, HTTPS_HOST, DNS_HOST = "http.test", "https.test", "dns.test"
"""Host names of the laboratory's servers (RFC 6761, section 6.2)."""

COOKIES = ("warm", "stale", "no-early-data", "too-early")
"""States of the second visit; docs/prove.md explains them."""

_DNS_PORT = 53
_ORIGINS = {"4": "198.19.0.0", "6": "2001:2:0:1::"}
"""Networks of the origins, whose host numbers count from 1 (`crates/lab/src/net/addresses.rs`)."""
_BODY_BYTES = 1_000
_BEYOND_VISITS_S = 30.0
"""How long a laboratory takes in addition to its two visits, at most."""
_SERVER_S = 60.0


@dataclass(frozen=True)
class Surroundings:
    """The laboratory's settings for the program.

    Attributes:
        path: The path that its packets cross.
        cookies: One of `COOKIES`.
        sysctl: `net.ipv4.tcp_fastopen` of the program.
        hosts: Further host names, each with HTTP on port 80 and HTTPS on 443.
        limit_s: Time limit of a visit, s.
        grace_s: How long processes that the program left running may take to end by themselves, s.
        ip: Version of IP.
        seed: Seed of the random packet loss.
        capture: File for a capture of all packets; `None`: none is written.
    """

    path: Path
    cookies: str = "warm"
    sysctl: int = 1
    hosts: Sequence[str] = ()
    limit_s: float = 30.0
    grace_s: float = 2.0
    ip: str = "4"
    seed: int = 1
    capture: FilePath | None = None


@dataclass(frozen=True)
class ProvedServer:
    """A server program, and the path between it and the laboratory's client.

    Attributes:
        argv: The program and its arguments.
        port: The port that it listens on.
        host: The host name in the requests.
        path: The path that packets cross.
        sysctl: `net.ipv4.tcp_fastopen` of the program.
        speaks_tls: Whether the port speaks TLS; `None`: the laboratory tries it.
    """

    argv: Sequence[str]
    port: int
    host: str
    path: Path
    sysctl: int = 3
    speaks_tls: bool | None = None


def placeholders(ip: str) -> dict[str, str]:
    """The values of `{NAME}` in a command, by name.

    Args:
        ip: Version of IP.
    """
    words = {"http": f"http://{HTTP_HOST}/", "https": f"https://{HTTPS_HOST}/", "ca": CA_FILE}
    ports = {"http": 80, "https": 443, "dns": _DNS_PORT}
    for number, (name, host) in enumerate(
        {"http": HTTP_HOST, "https": HTTPS_HOST, "dns": DNS_HOST}.items(), start=1
    ):
        address = str(ip_address(_ORIGINS[ip]) + number)
        words |= {f"{name}_host": host, f"{name}_ip": address, f"{name}_port": str(ports[name])}
        words.setdefault(name, f"[{address}]:{ports[name]}" if ":" in address else f"{address}:{ports[name]}")
    return words


def filled(argv: Sequence[str], ip: str) -> list[str]:
    """A command with its placeholders replaced; other braces stay unchanged."""
    words = placeholders(ip)
    names = "|".join(map(re.escape, words))
    return [re.sub(rf"\{{({names})\}}", lambda found: words[found[1]], word) for word in argv]


def prove(around: Surroundings, argv: Sequence[str]) -> ProveFacts:
    """Runs a program twice in one laboratory.

    Args:
        around: The laboratory's settings.
        argv: The program and its arguments, with placeholders.

    Raises:
        LabError: The laboratory could not be built, or died.
    """
    job = {
        "pages": [{"page": _page(around.hosts), "bodies": {}, "headers": {}}],
        "dns_host": DNS_HOST,
        "ip": around.ip,
        "path": around.path.to_json(around.seed),
        # Both TFO and early data are possible; the program need not use them.
        "mode": "tfo+early-data",
        "cookies": around.cookies if around.cookies in ("no-early-data", "too-early") else "cold",
        "forgets_keys": around.cookies == "stale",
        "scheme": "recorded",
        "offers_quic": True,
        "ca_file": CA_FILE,
        "late_bound_ms": LATE_BOUND_MS,
        "timing": {"keep_awake": may_keep_awake()},
        "capture": str(around.capture.absolute()) if around.capture else None,
        "sysctl": around.sysctl,
        "limit_ms": round(around.limit_s * 1e3),
        "grace_ms": round(around.grace_s * 1e3),
        "program": {"argv": filled(argv, around.ip), "env": _environment(around.ip)},
    }
    facts: ProveFacts = Lab().ask(
        "prove", job, timeout_s=2 * (around.limit_s + around.grace_s) + _BEYOND_VISITS_S
    )
    return facts


def prove_server(server: ProvedServer) -> ServerFacts:
    """Starts a server program in the laboratory and connects to it, without a cookie and with one.

    Raises:
        LabError: The laboratory could not be built, or the program does not listen.
    """
    middlebox = server.path.middlebox
    job = {
        "server": {"argv": list(server.argv), "port": server.port},
        "host": server.host,
        "rtt_ms": server.path.rtt_ms,
        "middlebox": middlebox.to_json() if middlebox else None,
        "sysctl": server.sysctl,
        "speaks_tls": server.speaks_tls,
    }
    facts: ServerFacts = Lab().ask("prove-server", job, timeout_s=_SERVER_S)
    return facts


def _environment(ip: str) -> Mapping[str, str]:
    """The placeholders as variables for scripts and configurations, and the CA file for TLS libraries."""
    own = {f"FIRSTFLIGHT_{name.upper()}": value for name, value in placeholders(ip).items()}
    trust = ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")
    return own | dict.fromkeys(trust, CA_FILE)


def _page(hosts: Sequence[str]) -> dict[str, object]:
    """A page with a resource of every origin, for the servers, in the profile format (docs/profile.md)."""
    urls = [f"http://{HTTP_HOST}/", f"https://{HTTPS_HOST}/", f"http://{DNS_HOST}/"]
    urls += [f"{scheme}://{host}/" for host in hosts for scheme in ("http", "https")]
    return {
        "format": "firstflight-profile/1",
        "name": "prove",
        "resources": [
            {
                "url": url,
                "kind": "document" if number == 0 else "other",
                "mime": "text/html",
                "request_bytes": 0,
                "header_bytes": 200,
                "body_bytes": _BODY_BYTES,
                **({"initiator": {"resource": 0, "via": "parser"}} if number else {}),
            }
            for number, url in enumerate(urls)
        ],
    }

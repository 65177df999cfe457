"""How the browser is started: flags and a fresh profile, so that it loads the page and does nothing else."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from firstflight.engines.clients.chromium.job import DriveJob
from firstflight.errors import UsageError

FEATURES_OFF = (
    # What asks the network on its own account.
    "AimEnabled",
    "AutofillServerCommunication",
    "CertificateTransparencyComponentUpdater",
    "DialMediaRouteProvider",
    "InterestFeedContentSuggestions",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PreconnectToSearch",
    "Translate",
    # What loads a page otherwise than it says.
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    # What Playwright needs off.
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "LensOverlay",
    "PaintHolding",
)

FLAGS = (
    f"--disable-features={','.join(FEATURES_OFF)}",
    "--disable-quic",
    "--no-proxy-server",
    "--disable-domain-reliability",
    "--disable-client-side-phishing-detection",
    "--no-pings",
    "--disable-gpu",
)
"""Beyond those that Playwright gives (no field trials, background networking, updates, sync, first run)."""

_NEVER = 2
"""`NetworkPredictionOptions` (chrome/browser/preloading): no preconnect, prefetch or prerender by guess."""

_CLASSIC = "--ssl-version-max=tls1.2"
"""The policy PostQuantumKeyAgreementEnabled went with version 147: since then a ClientHello without the key
share is one of TLS 1.2. With False Start (RFC 7918) that handshake takes one round trip, as with TLS 1.3."""


_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
"""A name or an address, as `crates/page/src/validate.rs` lets it pass."""

MAX_ARGUMENT_BYTES = 128 * 1024
"""The longest argument that Linux hands to a program, its end included (`MAX_ARG_STRLEN` in binfmts.h)."""


def check_hosts(hosts: Sequence[str]) -> None:
    """Refuses more hosts than the browser can be told of.

    Raises:
        UsageError: Their names are too long for one argument.
    """
    [rules] = _names(hosts)
    length = len(rules.encode()) + 1
    if length > MAX_ARGUMENT_BYTES:
        raise UsageError(
            f"its {len(hosts)} hosts take {length} bytes of Chromium's --host-resolver-rules; Linux takes at "
            f"most {MAX_ARGUMENT_BYTES} in one argument",
            "use another client (--client loader, curl, wget2), or simulate the page (--engine simulate)",
        )


def flags(job: DriveJob) -> list[str]:
    """The command line of the browser, without what Playwright adds."""
    tls = _trust(job.authority) if job.post_quantum else [*_trust(job.authority), _CLASSIC]
    return [*FLAGS, *_names(job.hosts), *tls, *job.flags]


def write_profile(folder: Path, job: DriveJob) -> None:
    """Writes what a fresh profile must say before its first start.

    Chromium asks some hosts only with https, whatever the page says (its HSTS preload list), until its build
    is ten weeks old (`TransportSecurityState::IsBuildTimely`). `upgrade_bypass_list` is the preference behind
    the policy HSTSPolicyBypassList.
    """
    preferences = {
        "hsts": {"policy": {"upgrade_bypass_list": job.clear_hosts}},
        "net": {"network_prediction_options": _NEVER},
    }
    (folder / "Default").mkdir(parents=True)
    (folder / "Default" / "Preferences").write_text(json.dumps(preferences))


def _trust(authority: str | None) -> list[str]:
    """The laboratory writes the digest of its key before its certificate."""
    if authority is None:
        return []
    digest = re.search(r"^SPKI-SHA256: (\S+)$", Path(authority).read_text(), re.MULTILINE)
    return [f"--ignore-certificate-errors-spki-list={digest[1]}"] if digest else []


def _names(hosts: Sequence[str] | None) -> list[str]:
    """Other names fail at once, in the browser: a resolver could reach out of the laboratory by a socket."""
    if hosts is None:
        return []
    # The page model has no other hosts. In a rule `*` would stand for every name, and `,` begin another rule.
    if odd := [host for host in hosts if not _HOST.fullmatch(host)]:
        raise ValueError(f"{odd[0]!r}: no host that a page can name")
    rules = ", ".join(["MAP * ~NOTFOUND", *(f"EXCLUDE {host}" for host in hosts)])
    return [f"--host-resolver-rules={rules}"]

"""The preferences and the command line with which Firefox loads the page and does nothing else."""

import json
from pathlib import Path

from firstflight.engines.clients.job import DriveJob

Value = bool | int | str

_ITS_OWN: dict[str, Value] = {
    # What asks the network on its own account. Driven over BiDi, Firefox leaves out most of it by itself
    # (remote/shared/RecommendedPreferences.sys.mjs).
    "app.normandy.enabled": False,
    "app.update.disabledForTesting": True,
    "browser.newtabpage.enabled": False,
    "browser.region.network.url": "",
    "browser.safebrowsing.downloads.remote.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.safebrowsing.update.enabled": False,
    "browser.search.update": False,
    "browser.startup.page": 0,
    "browser.topsites.contile.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "dom.push.connection.enabled": False,
    "extensions.getAddons.cache.enabled": False,
    "extensions.systemAddon.update.enabled": False,
    "extensions.update.enabled": False,
    "media.gmp-manager.updateEnabled": False,
    "messaging-system.rsexperimentloader.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "nimbus.rollouts.enabled": False,
    "security.remote_settings.crlite_filters.enabled": False,
    "security.remote_settings.intermediates.enabled": False,
    "services.settings.server": "data:,#remote-settings-dummy/v1",
    "toolkit.telemetry.enabled": False,
    "toolkit.telemetry.server": "",
    # What opens connections by guess.
    "network.dns.disablePrefetch": True,
    "network.dns.disablePrefetchFromHTTPS": True,
    "network.http.speculative-parallel-limit": 0,
    "network.predictor.enabled": False,
    "network.prefetch-next": False,
    # Names are those of the laboratory's hosts file, and no proxy is asked.
    "network.dns.native_https_query": False,
    "network.proxy.type": 0,
    "network.trr.mode": 5,
    # What loads a page otherwise than it says.
    "dom.security.https_first": False,
    "dom.security.https_first_schemeless": False,
    "network.stricttransportsecurity.preloadlist": False,
    # What would be told a page, or look at it, in place of it.
    "browser.aboutwelcome.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionPolicyBypassNotification": True,
    "security.OCSP.enabled": 0,
    # Times to the microsecond.
    "privacy.reduceTimerPrecision": False,
}

_TLS_1_2, _TLS_1_3 = 3, 4

_CLASSIC: dict[str, Value] = {
    "security.tls.enable_kyber": False,
    "security.tls.client_hello.send_p256_keyshare": False,
    "network.http.http3.enable_kyber": False,
}
"""A ClientHello with one key share, X25519: a SYN holds it, a session ticket included."""

_QUIC: dict[str, Value] = {
    # The authority of the laboratory is no public one.
    "network.http.http3.disable_when_third_party_roots_found": False,
    # Otherwise TCP is tried in addition to QUIC that takes longer than 100 ms.
    "network.http.http3.parallel_fallback_conn_limit": 0,
}


def preferences(job: DriveJob) -> dict[str, Value]:
    """What Firefox is told for this load."""
    quic = {**_QUIC, _QUIC_FROM_THE_FIRST: ",".join(f"{host};h3=:443" for host in job.hosts or [])}
    return {
        **_ITS_OWN,
        "browser.chrome.site_icons": job.favicon,
        "browser.chrome.favicons": job.favicon,
        "network.http.http3.enable": job.quic,
        "security.tls.version.max": _TLS_1_2 if job.tls12 else _TLS_1_3,
        "security.tls.enable_0rtt_data": job.early_data,
        "privacy.partition.network_state": job.partitions,
        **(quic if job.quic else {}),
        **({} if job.post_quantum else _CLASSIC),
    }


_QUIC_FROM_THE_FIRST = "network.http.http3.alt-svc-mapping-for-testing"
"""QUIC from the first request on: otherwise an answer over TCP tells a browser that a server speaks it."""


def write_profile(folder: Path, job: DriveJob) -> None:
    """Writes what a fresh profile must say before its first start."""
    folder.mkdir(parents=True)
    lines = (
        f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in preferences(job).items()
    )
    (folder / "user.js").write_text("".join(lines))


def arguments(folder: Path, job: DriveJob) -> list[str]:
    """The command line of the browser, which leaves the port that it listens on in its profile."""
    return [
        job.browser,
        "--headless",
        "--no-remote",
        "--new-instance",
        "--profile",
        str(folder),
        "--remote-debugging-port",
        "0",
        "--remote-allow-system-access",
        *job.flags,
        "about:blank",
    ]

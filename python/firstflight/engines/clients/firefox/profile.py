"""The preferences and the command line that keep Firefox from doing anything but loading the page."""

import json
from pathlib import Path

from firstflight.engines.clients.job import DriveJob

Value = bool | int | str

_ITS_OWN: dict[str, Value] = {
    # Features that send requests of their own. Under BiDi, Firefox switches most of them off by itself
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
    # Speculative connections.
    "network.dns.disablePrefetch": True,
    "network.dns.disablePrefetchFromHTTPS": True,
    "network.http.speculative-parallel-limit": 0,
    "network.predictor.enabled": False,
    "network.prefetch-next": False,
    # Names come from the laboratory's hosts file, and no proxy is used.
    "network.dns.native_https_query": False,
    "network.proxy.type": 0,
    "network.trr.mode": 5,
    # Features that change how a page is loaded.
    "dom.security.https_first": False,
    "dom.security.https_first_schemeless": False,
    "network.stricttransportsecurity.preloadlist": False,
    # Pages and dialogs that would be shown in place of the page.
    "browser.aboutwelcome.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionPolicyBypassNotification": True,
    "security.OCSP.enabled": 0,
    # Times with a resolution of a microsecond.
    "privacy.reduceTimerPrecision": False,
}

_TLS_1_2, _TLS_1_3 = 3, 4

_CLASSIC: dict[str, Value] = {
    "security.tls.enable_kyber": False,
    "security.tls.client_hello.send_p256_keyshare": False,
    "network.http.http3.enable_kyber": False,
}
"""A ClientHello with one key share, X25519: it fits into a SYN, even with a session ticket."""

_QUIC: dict[str, Value] = {
    # By default a certificate of an authority that is not public disables HTTP/3.
    "network.http.http3.disable_when_third_party_roots_found": False,
    # By default Firefox also tries TCP when QUIC takes longer than 100 ms.
    "network.http.http3.parallel_fallback_conn_limit": 0,
}


def preferences(job: DriveJob) -> dict[str, Value]:
    """The preferences of Firefox for this load."""
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
"""Uses QUIC from the first request on. By default a browser learns of QUIC from a response over TCP."""


def write_profile(folder: Path, job: DriveJob) -> None:
    """Writes the profile that a new browser starts with."""
    folder.mkdir(parents=True)
    lines = (
        f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in preferences(job).items()
    )
    (folder / "user.js").write_text("".join(lines))


def arguments(folder: Path, job: DriveJob) -> list[str]:
    """The command line of the browser. Firefox writes the port that it listens on into its profile."""
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

"""Finds Chromium, builds its command line and profile, and checks whether its sandbox works.

Its flags and a fresh profile keep it from doing anything but loading the page.
"""

import ctypes
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from firstflight.engines.clients import versions
from firstflight.engines.clients.job import DriveJob
from firstflight.errors import UsageError

_NAMESPACES = 0x10000000 | 0x20000000 | 0x40000000
"""CLONE_NEWUSER, CLONE_NEWPID and CLONE_NEWNET: the sandbox needs all three."""

_NEW_USER_AND_MOUNTS = 0x10000000 | 0x00020000
_UNPRIVILEGED_ID = 65_534
"""User and group id of nobody, which owns no file on any Linux; `NOBODY` in crates/lab."""
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
_SYS_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _RDONLY = 442, -100, 0x8000, 1
_PR_SET_NO_NEW_PRIVS, _CAPABILITY_VERSION_3 = 38, 0x20080522

NO_SANDBOX = "Chromium cannot have its sandbox here"

UNSANDBOXED = (
    "Chromium runs without its sandbox",
    "use pages that you trust, or leave out --no-browser-sandbox",
)


def find_browser(named: str = "") -> Path:
    """As `versions.find_browser`, of Chromium."""
    return versions.find_browser("chromium", named)


def browser_version(browser: Path) -> str:
    """The version that the browser reports; empty if it reports none."""
    return versions.ask_version(str(browser))


def check_sandbox(wanted: bool, warn: Callable[[str, str], object]) -> None:
    """Checks, before its start, whether a browser outside a laboratory can have its sandbox.

    Args:
        wanted: Whether it must have one; the caller may have switched it off.
        warn: Told that the caller switched it off, and what that means.

    Raises:
        UsageError: The browser must have a sandbox and cannot.
    """
    if not wanted:
        warn(*UNSANDBOXED)
    elif not can_have_sandbox():
        raise no_sandbox("browser")


def no_sandbox(key: str) -> UsageError:
    """The error for a Chromium without a sandbox. `key` is the option that chose the browser."""
    return UsageError(
        f"{key}: {NO_SANDBOX}: the system allows it no namespaces",
        "allow nested user namespaces, see docs/chromium.md; or, for pages that you trust, "
        "run it without: --no-browser-sandbox",
    )


def can_have_sandbox() -> bool:
    """Whether Chromium's sandbox works for this process. As root: after `become_ordinary`, which is tried."""
    child = os.fork()
    if child == 0:
        ordinary = os.geteuid() != 0 or become_ordinary([])
        os._exit(not ordinary or ctypes.CDLL(None).unshare(_NAMESPACES) != 0)
    return os.waitpid(child, 0)[1] == 0


def become_ordinary(writable: Iterable[Path]) -> bool:
    """Drops root's rights of this single-threaded process and of all processes that it starts.

    It moves to a user namespace where its user and group are `_UNPRIVILEGED_ID`, without capabilities. It
    still owns root's files, so every file system becomes read-only for it. The network stays the same.

    Args:
        writable: Folders that stay writable, as does shared memory.

    Returns:
        Whether it succeeded; if not, this process must not start a browser.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def check(answer: int) -> None:
        if answer != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def set_attributes(folder: Path, attributes: tuple[int, int], flags: int = 0) -> None:
        change = (ctypes.c_uint64 * 4)(*attributes)
        name = os.fsencode(folder)
        call = ctypes.c_long(_SYS_MOUNT_SETATTR)
        check(libc.syscall(call, _AT_FDCWD, name, flags, ctypes.byref(change), ctypes.sizeof(change)))

    user, group = os.geteuid(), os.getegid()
    try:
        check(libc.unshare(_NEW_USER_AND_MOUNTS))
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{_UNPRIVILEGED_ID} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{_UNPRIVILEGED_ID} {group} 1")
        check(libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))
        set_attributes(Path("/"), (_RDONLY, 0), _AT_RECURSIVE)
        for folder in filter(Path.is_dir, [*writable, Path("/dev/shm")]):
            name = os.fsencode(folder)
            check(libc.mount(name, name, None, _MS_BIND, None))
            set_attributes(folder, (0, _RDONLY))
        # Chromium writes the uid and gid maps of its own namespaces there.
        set_attributes(Path("/proc"), (0, _RDONLY))
        check(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        none = (ctypes.c_uint32 * 6)()
        check(libc.capset((ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0), none))
    except OSError:
        return False
    return True


FEATURES_OFF = (
    # Features that send requests of their own.
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
    # Features that change how a page is loaded.
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    # Features that Playwright needs to be off.
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "LensOverlay",
    "PaintHolding",
)

_PARTITIONS = "PartitionConnectionsByNetworkIsolationKey"

FLAGS = (
    "--no-proxy-server",
    "--disable-domain-reliability",
    "--disable-client-side-phishing-detection",
    "--no-pings",
    "--disable-gpu",
)
"""In addition to Playwright's flags (no field trials, background networking, updates, sync, first run)."""

_QUIC = ("--enable-quic", "--origin-to-force-quic-on=*")
"""Uses QUIC from the first request on. By default a browser learns of QUIC from a response over TCP."""

_NEVER = 2
"""`NetworkPredictionOptions` (chrome/browser/preloading): no speculative preconnect, prefetch, prerender."""

_EARLY_DATA = "--enable-features=EnableTLS13EarlyData"
"""Early data is off by default over TCP. QUIC has it without this flag."""

_TLS12 = "--ssl-version-max=tls1.2"
"""Version 147 removed the policy PostQuantumKeyAgreementEnabled. Since then only TLS 1.2 has a ClientHello
without that key share. With False Start (RFC 7918) its handshake takes one round trip, as with TLS 1.3."""

_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
"""A host name or address, as `crates/page/src/validate.rs` accepts it."""

MAX_ARGUMENT_BYTES = 128 * 1024
"""The longest argument that Linux passes to a program, with its final NUL (`MAX_ARG_STRLEN` in binfmts.h)."""


def check_hosts(hosts: Sequence[str]) -> None:
    """Refuses a page with more hosts than the browser's command line can hold.

    Raises:
        UsageError: The names are too long for one argument.
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
    """The command-line flags of the browser, apart from those of Playwright."""
    tls = _trust(job.authority)
    if job.tls12 or not job.post_quantum:
        tls.append(_TLS12)
    if job.early_data:
        tls.append(_EARLY_DATA)
    quic = _QUIC if job.quic else ("--disable-quic",)
    off = FEATURES_OFF if job.partitions else (*FEATURES_OFF, _PARTITIONS)
    return [f"--disable-features={','.join(off)}", *FLAGS, *quic, *_names(job.hosts), *tls, *job.flags]


def write_profile(folder: Path, job: DriveJob) -> None:
    """Writes the profile that a new browser starts with.

    Chromium requests some hosts only with https, whatever the page says (its HSTS preload list). It does so
    until its build is ten weeks old (`TransportSecurityState::IsBuildTimely`). `upgrade_bypass_list` is the
    preference behind the policy HSTSPolicyBypassList.
    """
    preferences = {
        "hsts": {"policy": {"upgrade_bypass_list": job.clear_hosts}},
        "net": {"network_prediction_options": _NEVER},
    }
    (folder / "Default").mkdir(parents=True)
    (folder / "Default" / "Preferences").write_text(json.dumps(preferences))


def _trust(authority: str | None) -> list[str]:
    """Trusts the authority's key. The laboratory writes its digest above the certificate in the file."""
    if authority is None:
        return []
    digest = re.search(r"^SPKI-SHA256: (\S+)$", Path(authority).read_text(), re.MULTILINE)
    return [f"--ignore-certificate-errors-spki-list={digest[1]}"] if digest else []


def _names(hosts: Sequence[str] | None) -> list[str]:
    """Makes other names fail in the browser. Its resolver could leave the laboratory through a socket."""
    if hosts is None:
        return []
    # The page model has no other hosts. In a rule `*` would match every name, and `,` would start a new rule.
    if odd := [host for host in hosts if not _HOST.fullmatch(host)]:
        raise ValueError(f"{odd[0]!r}: no host that a page can name")
    rules = ", ".join(["MAP * ~NOTFOUND", *(f"EXCLUDE {host}" for host in hosts)])
    return [f"--host-resolver-rules={rules}"]

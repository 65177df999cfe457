"""What a laboratory must not change on the host: settings, interfaces, routes, names, mounts."""

from pathlib import Path

_SETTINGS = ("net/ipv4/tcp_*", "net/ipv4/ip_*", "net/core/*", "net/ipv4/conf/*/*", "kernel/sched_*")


def state() -> dict[str, object]:
    """Reads all of these. Two results are equal if nothing has changed between the two calls."""
    settings = (file for pattern in _SETTINGS for file in Path("/proc/sys").glob(pattern))
    return {
        **{str(file): _text(file) for file in settings},
        "interfaces": sorted(line.split(":")[0].strip() for line in _text("/proc/net/dev").splitlines()[2:]),
        "routes": _text("/proc/net/route"),
        "hosts": _text("/etc/hosts"),
        "mounts": _text("/proc/self/mounts"),
        "shared memory": sorted(file.name for file in Path("/dev/shm").glob("firstflight*")),
    }


def _text(file: str | Path) -> str:
    try:
        return Path(file).read_text()
    except OSError:
        return ""

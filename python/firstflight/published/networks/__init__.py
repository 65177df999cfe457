"""Networks by name, with values that their sources publish: a TOML file each, which names its source.

They are the values of `--network NAME`, and captions name paths after them.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent
_FACTORS = {"kbit": 1e-3, "mbit": 1.0}


def network_files() -> list[Path]:
    """The files of all networks, in the order of their names; a file's stem is its name."""
    return sorted(_FOLDER.glob("*.toml"))


def network_name(rtt_ms: float, down_mbps: float | None, up_mbps: float | None, loss: float) -> str:
    """The name of the network with the values of an access link; empty if there is none.

    If there are several, such as `cable` and `wpt-cable`, it is the shortest. Networks with several
    round-trip times, those of the paper and the course, are left out.

    Args:
        rtt_ms: Round-trip time, ms.
        down_mbps: Rate towards the client, Mbit/s; `None`: unlimited.
        up_mbps: Rate from the client, Mbit/s; `None`: unlimited.
        loss: Share of packets lost in each direction.
    """
    return _names().get((rtt_ms, down_mbps, up_mbps, loss), "")


@cache
def _names() -> dict[tuple[object, ...], str]:
    found: dict[tuple[object, ...], str] = {}
    for file in sorted(network_files(), key=lambda file: len(file.stem), reverse=True):
        keys = tomllib.loads(file.read_text(encoding="utf-8"))
        if isinstance(keys["rtt"], int | float) and keys.keys() <= {"rtt", "down", "up", "loss"}:
            rates = (_mbps(keys["down"]), _mbps(keys["up"]))
            found[(float(keys["rtt"]), *rates, float(keys.get("loss", 0)))] = file.stem
    return found


def _mbps(rate: str) -> float:
    return round(float(rate[:-4]) * _FACTORS[rate[-4:]], 9)

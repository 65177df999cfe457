"""Numbers and cells as people read them: signs, intervals, seconds, verdicts; in sentences and views."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from firstflight.analysis.critical_path_fetch import Component
from firstflight.plural import plural

MINUS = "\N{MINUS SIGN}"
DASH = "\N{EN DASH}"
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"

COMPONENT_NAMES: dict[Component, str] = {
    "tcp": "TCP handshake",
    "tls": "TLS handshake",
    "connection": "waiting for a connection",
    "request": "request upload",
    "propagation": "round trip",
    "server": "server",
    "queueing": "queueing",
    "window": "congestion window",
    "transfer": "transfer",
    "processing": "processing",
}
"""Components as sentences and views name them."""

MODE_NAMES = {"tcp": "without TFO", "tfo": "with TFO"}
"""Modes as sentences and views name them."""

_PATH_FIELDS = ("down_mbps", "up_mbps", "loss", "topology", "client", "engine", "cookies")


def percent(fraction: float | None, digits: int = 1) -> str:
    """A signed percentage: ``+16.3 %``, ``\N{MINUS SIGN}3.1 %``; a dash for none."""
    if fraction is None:
        return DASH
    text = f"{abs(100 * fraction):.{digits}f}"
    sign = "" if float(text) == 0 else "+" if fraction > 0 else MINUS
    return f"{sign}{text} %"


def interval(low: float | None, high: float | None) -> str:
    """A signed interval in percent: ``+12.0 to +18.4``; empty for none."""
    if low is None or high is None:
        return ""
    return f"{percent(low)[:-2]} to {percent(high)[:-2]}"


def seconds(ms: float | None) -> str:
    """A time for people: ``3.49 s``, below a second ``0.843 s``; a dash for none."""
    if ms is None:
        return DASH
    return f"{ms / 1000:.3f} s" if ms < 1000 else f"{ms / 1000:.2f} s"


def spread(estimate: Mapping[str, float | None]) -> str:
    """The interval of a median in seconds, ``3.41\N{EN DASH}3.52``; empty for none."""
    low, high = estimate["low"], estimate["high"]
    return "" if low is None or high is None else f"{seconds(low)[:-2]}{DASH}{seconds(high)[:-2]}"


def number(value: float, digits: int = 0) -> str:
    """A number with a real minus sign: ``1,312``, ``\N{MINUS SIGN}12``."""
    text = f"{value:,.{digits}f}"
    return text.lstrip("-") if float(text.replace(",", "")) == 0 else text.replace("-", MINUS)


def rtt(rtt_ms: float) -> str:
    """An RTT without needless digits: ``20``, ``62.5``."""
    return f"{rtt_ms:g}"


def rates(cell: Mapping[str, Any]) -> str:
    """Rates down and up of a cell, Mbit/s: ``4/0.256``, ``unlimited/1``."""
    values = (cell["down_mbps"], cell["up_mbps"])
    return "/".join("unlimited" if mbps is None else f"{mbps:g}" for mbps in values)


def path(cell: Mapping[str, Any]) -> str:
    """Path, client and engine of a cell: ``Access link 4/0.256 Mbit/s, loader, emulate``."""
    link = {"access": "Access link", "star": "Star,"}.get(cell["topology"], cell["topology"])
    loss = f", loss {100 * cell['loss']:g} %" if cell["loss"] else ""
    return f"{link} {rates(cell)} Mbit/s{loss}, {cell['client']}, {cell['engine']}, {cell['cookies']} cookies"


def varying(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """The fields other than page and RTT in which the cells of a run differ."""
    return [name for name in _PATH_FIELDS if len({cell[name] for cell in cells}) > 1]


def variant(cell: Mapping[str, Any], fields: Sequence[str]) -> str:
    """What tells a cell from those of the same page and RTT: ``star wget2``; empty where nothing does."""
    suffix = {"down_mbps": "mbit-down", "up_mbps": "mbit-up", "loss": "-loss"}
    values = ((cell[name], suffix.get(name, "")) for name in fields)
    return " ".join(
        unit.replace("mbit", "unlimited") if value is None else f"{value}{unit}" for value, unit in values
    )


def effect(fraction: float | None) -> str:
    """An improvement in words, so that no reader has to know the sign's meaning: ``16.3 % faster``."""
    if fraction is None:
        return "nothing to compare"
    text = percent(fraction)
    word = "slower" if text.startswith(MINUS) else "faster" if text.startswith("+") else "different"
    return f"{text.lstrip('+' + MINUS)} {word}"


def verdict(cell: Mapping[str, Any]) -> str:
    """A cell's verdict; ``not proved`` without proof, ``not compared`` where no block has both loads."""
    if not cell["proof"]["ok"]:
        return "not proved"
    return str(cell["verdict"]) if cell["n"] else "not compared"


def proved(cells: Sequence[Any]) -> list[Any]:
    """The cells whose proof holds."""
    return [cell for cell in cells if cell["proof"]["ok"]]


def blocks(cells: Sequence[Mapping[str, Any]]) -> str:
    """How many paired blocks the cells stand on: ``5 paired blocks``, ``3 to 5 paired blocks``."""
    counts = sorted({int(cell["n"]) for cell in cells})
    return (
        plural(counts[0], "paired block")
        if len(counts) == 1
        else f"{counts[0]} to {counts[-1]} paired blocks"
    )


def short_url(url: str, limit: int) -> str:
    """A URL to recognise rather than to follow: ``host/…/file``, at most `limit` characters."""
    address = re.split(r"[?#]", re.sub(r"^[A-Za-z][\w+.-]*://", "", url))[0]
    host, *steps = [step for step in address.split("/") if step] or [""]
    if not steps:
        return _cut(host, limit)
    whole = "/".join([host, *steps])
    if len(whole) <= limit:
        return whole
    start = f"{_cut(host, limit // 2)}/" + (f"{ELLIPSIS}/" if len(steps) > 1 else "")
    return start + _cut(steps[-1], limit - len(start))


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head = (limit - 1) // 2
    return f"{text[:head]}{ELLIPSIS}{text[len(text) - (limit - 1 - head) :]}"


def listed(texts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


def some(texts: Sequence[str]) -> str:
    """The first three that differ, and how many more there are."""
    different = list(dict.fromkeys(texts))
    more = f" and {len(different) - 3} more" if len(different) > 3 else ""
    return ", ".join(different[:3]) + more

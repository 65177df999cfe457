"""Formats numbers and cells for people: signs, intervals, seconds, verdicts; in sentences and views."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import cast

from firstflight.analysis.cells import SIDES
from firstflight.analysis.critical_path.stages import Component
from firstflight.analysis.critical_path.walk import RoundTrip
from firstflight.analysis.records import Cell, CellSetting, Estimate, Setting, Side, plt_of
from firstflight.analysis.statistics import EXACT, FASTER, NOT_COMPARED, NOT_PROVED, SLOWER, TOO_FEW_REPEATS
from firstflight.model.treatment import FAST_OPEN, PLAIN, column_name, phrase
from firstflight.published.networks import network_name
from firstflight.text import plural

MINUS = "\N{MINUS SIGN}"
DASH = "\N{EN DASH}"
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"

COMPONENT_NAMES: dict[Component, str] = {
    "tcp": "TCP handshake",
    "tls": "TLS handshake",
    "quic": "QUIC handshake",
    "connection": "waiting for a connection",
    "request": "request upload",
    "propagation": "round trip",
    "server": "server",
    "queueing": "queueing",
    "window": "congestion window",
    "transfer": "transfer",
    "processing": "processing",
}
"""Names of components in sentences and views."""

ROUND_TRIPS: dict[RoundTrip, str] = {
    "tcp": "of TCP handshakes",
    "tls": "of TLS handshakes",
    "quic": "of QUIC handshakes",
    "request": "of requests",
    "window": "for the congestion window",
    "retransmission": "for lost SYNs",
}
"""What round trips were spent on; the text follows their number."""

CELL_FIELDS = ("down_mbps", "up_mbps", "loss", "topology", "client", "engine", "cookies")
"""Fields in which cells of one page and RTT may differ, whatever is compared."""

_COMPARED = ("treatment", "baseline")


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


def spread(estimate: Estimate) -> str:
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


def rates(cell: Setting) -> str:
    """The down and up rates of a cell, Mbit/s: ``4/0.256``, ``unlimited/1``."""
    values = (cell["down_mbps"], cell["up_mbps"])
    return "/".join("unlimited" if mbps is None else f"{mbps:g}" for mbps in values)


def comparison(cell: Setting) -> str:
    """What is compared: ``tfo against tcp``; empty if nothing is compared."""
    return f"{cell['treatment']} against {cell['baseline']}" if cell["treatment"] else ""


def is_of_fast_open(cell: Setting) -> bool:
    """Whether a cell compares Fast Open with its absence; also true if it names no treatment."""
    return {cell["baseline"], cell["treatment"]} <= {"", PLAIN, FAST_OPEN}


def treated(cells: Sequence[Setting]) -> str:
    """The treatment of cells in a sentence: ``with TFO``; for several, ``under each treatment``."""
    name = _only_treatment(cells)
    return "under each treatment" if name is None else phrase(name)


def faster(cells: Sequence[Setting]) -> str:
    """Meaning of an improvement above 0: ``faster with TFO``; for several, ``faster than the baseline``."""
    name = _only_treatment(cells)
    return "faster than the baseline" if name is None else f"faster {phrase(name)}"


def subject(cells: Sequence[Setting]) -> str:
    """What is compared, for a title: ``TCP Fast Open``, ``initial_window=32``."""
    if all(map(is_of_fast_open, cells)):
        return "TCP Fast Open"
    return _only_treatment(cells) or "each treatment"


def _only_treatment(cells: Sequence[Setting]) -> str | None:
    """The name of the treatment, if the cells have only one."""
    names = {cell["treatment"] for cell in cells}
    return names.pop() if len(names) == 1 else None


def column_names(cell: Setting) -> tuple[str, str]:
    """Column headings of baseline and treatment: their names, unless these are long."""
    baseline, treatment = (column_name(cell[side], side) for side in SIDES)
    return baseline, treatment


def setting(cell: Setting, *, beside_others: bool = False) -> str:
    """What the cells of a table have in common: what is compared, and the caption.

    Args:
        cell: One of the cells.
        beside_others: Whether there are tables of other comparisons. If not, Fast Open is not mentioned.
    """
    compares = "" if is_of_fast_open(cell) and not beside_others else f"{comparison(cell)}; "
    return f"{compares}{caption(cell)}"


def by_setting(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """The cells of each table, by what they have in common."""
    several = len({comparison(cell) for cell in cells}) > 1
    tables: dict[str, list[Cell]] = {}
    for cell in cells:
        tables.setdefault(setting(cell, beside_others=several), []).append(cell)
    return tables


def medians(cell: Cell) -> str:
    """The median PLTs of both sides: ``3.49 s without TFO, 2.92 s with TFO``."""
    sides = (f"{seconds(plt_of(cell, side)['median'])} {phrase(cell[side])}" for side in SIDES if cell[side])
    return ", ".join(sides)


def caption(*cells: Setting) -> str:
    """All settings that decide the numbers of cells, except page and RTT; tables and figures show it.

    ``Access link 4/0.256 Mbit/s, loader, emulate, scheme http, HTTP/1.1, keep-alive, warm cookies``. Most
    settings (queue, windows, ...) are left out if they have their default. Settings in which the two sides
    differ are left out, since the names of the treatments show them. Settings in which the cells differ are
    named at the end.

    Args:
        cells: Cells of a summary, or other mappings with the columns of
            `firstflight.results.schema.TREATMENT`. Optional are `url`, to name a recorded scheme, and
            `differs`, columns with both values.
    """
    return ", ".join(caption_lines(*cells))


def caption_lines(*cells: Setting) -> list[str]:
    """`caption` in two lines, for figures: first the path, then client, engine, servers and cookies."""
    parts = [_parts(cell) for cell in cells]
    same = {name: text for name, text in parts[0].items() if all(other[name] == text for other in parts)}
    differ = [name for name in parts[0] if name not in same and name != "network"]
    first = [text for name, text in same.items() if name in _OF_PATH and text]
    second = [text for name, text in same.items() if name not in _OF_PATH and text]
    lines = [", ".join(line) for line in (first, second) if line]
    if differ:
        lines[-1:] = ["; ".join([*lines[-1:], f"different by row or panel: {listed(differ)}"])]
    return lines


_KEEP_ALIVE = {True: "keep-alive", False: "a connection per request", None: "keep-alive not known"}
_OF_PATH = ("link", "network", "loss", "jitter", "duplicates", "queue", "middlebox")


def _parts(cell: Setting) -> dict[str, str]:
    """The parts of a cell's caption by topic; empty for a default, or where the sides differ."""
    parts = _parts_of(cell)
    if differs := cell.get("differs"):
        other = _parts_of(cast(Setting, {**cell, **{name: one for name, (one, _) in differs.items()}}))
        parts = {name: text if other[name] == text else "" for name, text in parts.items()}
    return parts


def _parts_of(cell: Setting) -> dict[str, str]:
    asked = cell
    link = {"access": "Access link", "star": "Star,"}.get(cell["topology"], cell["topology"])
    return {
        "link": f"{link} {rates(cell)} Mbit/s{_traces(asked)}",
        "network": _network(cell),
        "loss": _loss(asked),
        "jitter": _jitter(asked),
        "duplicates": f"{100 * share:g} % twice" if (share := asked["duplicate"]) else "",
        "queue": _queue(asked),
        "middlebox": "" if asked.get("middlebox") in (None, "off") else f"middlebox {asked['middlebox']}",
        "client": asked["client"],
        "engine": asked["engine"],
        "scheme": _scheme(asked),
        "HTTP version": _http(asked),
        "keep-alive": _KEEP_ALIVE[asked.get("keep_alive")],
        "cookies": f"{asked['cookies']} cookies",
        **{name: text if _is_unusual(asked, column) else "" for name, column, text in _unusual(asked)},
    }


def _network(cell: Setting) -> str:
    """The name of the network whose values the cell has; empty if there is none."""
    if cell["topology"] != "access":
        return ""
    at = (cell.get("rtt_ms") or 0.0, cell["down_mbps"], cell["up_mbps"], cell["loss"] or 0.0)
    name = network_name(*at)
    return f"network {name}" if name else ""


def _traces(asked: Setting) -> str:
    names = [str(asked[way]) for way in ("down_trace", "up_trace") if asked.get(way)]
    return f" (trace {listed(names)})" if names else ""


def _loss(asked: Setting) -> str:
    if not asked["loss"]:
        return ""
    burst = asked.get("loss_burst")
    bursts = f" in bursts of {burst:g} that lose {100 * (asked['loss_in_burst'] or 0):g} %" if burst else ""
    return f"loss {100 * asked['loss']:g} %{bursts}"


def _jitter(asked: Setting) -> str:
    reorders = " that reorders" if asked.get("reorder") else ""
    return f"jitter {asked['jitter_ms']:g} ms{reorders}" if asked.get("jitter_ms") else ""


def _queue(asked: Setting) -> str:
    queue = "" if asked.get("queue") in (None, _USUAL["queue"]) else f"queue {asked['queue']}"
    return f"queue {asked.get('queue')} with ECN" if asked.get("ecn") else queue


def _scheme(asked: Setting) -> str:
    scheme = asked.get("scheme")
    if scheme == "recorded" and asked.get("url"):
        return f"scheme recorded ({str(asked['url']).partition(':')[0]})"
    return f"scheme {scheme}" if scheme else "scheme not known"


def _http(asked: Setting) -> str:
    if asked.get("client") != "loader" and asked.get("scheme") != "http":
        return "HTTP version negotiated"
    if asked.get("http") == "recorded":
        return "HTTP version of each host as recorded"
    return f"HTTP/{asked['http']}" if asked.get("http") else "HTTP version not known"


_USUAL: dict[str, object] = {
    "queue": "1000p",
    "initial_window": 10,
    "congestion_control": "cubic",
    "ip": "4",
    "priorities": "none",
    "post_quantum": True,
    "certificate_bytes": 0,
    "origin_rtt": "path",
    "lookups": False,
    "server_time": True,
    "processing": 1.0,
    "determinism": True,
    "browser": "",
    "what_if": "off",
}
"""Values that a caption does not mention."""


def _is_unusual(asked: Setting, column: str) -> bool:
    return asked.get(column) not in (None, _USUAL[column])


def _unusual(asked: Setting) -> list[tuple[str, str, str]]:
    """Name, column and text of settings that a caption shows only if they differ from the default."""
    return [
        ("initial window", "initial_window", f"initial window {asked.get('initial_window')}"),
        ("congestion control", "congestion_control", str(asked.get("congestion_control"))),
        ("version of IP", "ip", f"IPv{asked.get('ip')}"),
        ("priorities", "priorities", "priorities of RFC 9218"),
        ("post-quantum key share", "post_quantum", "no post-quantum key share"),
        ("certificates", "certificate_bytes", f"certificates of {asked.get('certificate_bytes')} bytes"),
        ("distances of origins", "origin_rtt", "origins as far as recorded"),
        ("lookups", "lookups", "with lookups"),
        ("server time", "server_time", "servers at once"),
        ("processing", "processing", f"processing times {asked.get('processing') or 0:g}"),
        ("determinism", "determinism", "time and random numbers of the page not fixed"),
        ("browser", "browser", str(asked.get("browser")).rpartition("/")[2]),
        ("what if", "what_if", f"what if {asked.get('what_if')}"),
    ]


def varying(cells: Sequence[Setting]) -> list[str]:
    """The fields other than page and RTT in which the cells of a run differ.

    Fields in which both sides of every cell differ are left out: the names of the treatments show them.
    """
    return [
        name
        for name in (*CELL_FIELDS, *_COMPARED)
        if len({cell.get(name) for cell in cells}) > 1
        and not all(name in cell.get("differs", {}) for cell in cells)
    ]


def variant(cell: Setting, fields: Sequence[str]) -> str:
    """What distinguishes a cell from others of its page and RTT: ``star wget2``; empty if nothing does."""
    suffix = {"down_mbps": "mbit-down", "up_mbps": "mbit-up", "loss": "-loss"}
    values = ((cell.get(name), suffix.get(name, "")) for name in fields)
    return " ".join(
        unit.replace("mbit", "unlimited") if value is None else f"{value}{unit}" for value, unit in values
    )


def panels(cells: Sequence[CellSetting], over: str = "rtt_ms") -> list[str]:
    """The figure's panel for each cell: its page, and what distinguishes it from others of the page.

    Args:
        cells: The cells of the figure.
        over: The column on the axis of its curves or rows.
    """
    fields = [name for name in varying(cells) if name not in (over, *SIDES)]
    has_rtts = over != "rtt_ms" and len({cell["rtt_ms"] for cell in cells}) > 1
    parts = [[variant(cell, fields), f"{rtt(cell['rtt_ms'])} ms" if has_rtts else ""] for cell in cells]
    names = [" ".join(filter(None, part)) for part in parts]
    return [
        f"{cell['page']} ({name})" if name else cell["page"] for cell, name in zip(cells, names, strict=True)
    ]


def sides_once(cells: Sequence[CellSetting], panels: Sequence[str]) -> Iterator[tuple[int, Side]]:
    """Each side of each cell, with the cell's index. A baseline that treatments share comes once."""
    seen: set[tuple[object, ...]] = set()
    for place, (cell, panel) in enumerate(zip(cells, panels, strict=True)):
        for side in SIDES:
            known = (panel, cell["rtt_ms"], cell[side], side == "treatment" and place)
            if cell[side] and known not in seen:
                seen.add(known)
                yield place, side


def effect(cell: Cell) -> str:
    """The result of a cell: ``16.3 % faster`` if so judged, else ``+1.2 %, no difference shown``."""
    found, said = cell["improvement"]["point"], str(cell["verdict"])
    if said in (NOT_PROVED, NOT_COMPARED):
        return said
    if said in (FASTER, SLOWER):
        return f"{percent(found).lstrip('+' + MINUS)} {said}"
    return f"{percent(found)}, {said}"


def verdict(cell: Cell) -> str:
    """A cell's verdict; if there are too few repeats, with the number that is needed."""
    said = str(cell["verdict"])
    return f"{said} ({cell['blocks_needed']} needed)" if said == TOO_FEW_REPEATS else said


def short_verdict(cell: Cell) -> str:
    """The verdict for a table: for Fast Open one word, beside the improvement; otherwise in ms."""
    return verdict(cell) if is_of_fast_open(cell) else plt_verdict(cell)


def plt_verdict(cell: Cell) -> str:
    """The verdict in ms: ``slower by 92 ms``, ``same within 12 ms``; without ms if there is no such number.

    For an exact pair nothing is inferred: the text gives the difference and says that it is exact.
    """
    said, found = str(cell["verdict"]), cell["measures"].get("plt_ms")
    more = None if found is None else found["difference"]["point"]
    if cell["same_within_ms"] is not None:
        exact = ", exact" if said == EXACT else ""
        return f"same within {milliseconds(cell['same_within_ms'])}{exact}"
    if more is None or said not in (FASTER, SLOWER, EXACT):
        return verdict(cell)
    word = SLOWER if more > 0 else FASTER
    if said == EXACT:
        return f"{word} by {milliseconds(abs(more))}, exact" if more else "same, exact"
    return f"{word} by {milliseconds(abs(more))}" if word == said else said


def milliseconds(ms: float) -> str:
    """A duration for people, with or without a sign: ``92 ms``, ``1,312 ms``; below 10 ms ``0.4 ms``."""
    return f"{number(ms, 0 if abs(ms) >= _WHOLE_FROM_MS or not ms else 1)} ms"


_WHOLE_FROM_MS = 10


def signed(value: float) -> str:
    """A number with its sign: ``+92``, ``\N{MINUS SIGN}0.4``, ``0``; whole numbers have no decimals."""
    digits = 0 if abs(value) >= _WHOLE_FROM_MS or value == round(value) else 1
    text = number(value, digits)
    return text if text.startswith(MINUS) or float(text.replace(",", "")) == 0 else f"+{text}"


def verdict_class(cell: Cell) -> str:
    """The verdict as a CSS class: ``too-few-repeats``."""
    return str(cell["verdict"]).replace(" ", "-")


def proved(cells: Sequence[Cell]) -> list[Cell]:
    """The cells whose proof holds."""
    return [cell for cell in cells if cell["proof"]["ok"]]


def blocks(cells: Sequence[Cell]) -> str:
    """How many paired blocks the cells have: ``5 paired blocks``, ``3 to 5 paired blocks``."""
    if cells and all(cell["exact"] for cell in cells):
        return "one exact pair of loads"
    counts = sorted({int(cell["n"]) for cell in cells})
    return (
        plural(counts[0], "paired block")
        if len(counts) == 1
        else f"{counts[0]} to {counts[-1]} paired blocks"
    )


def short_url(url: str, limit: int) -> str:
    """A URL shortened for recognition, not for use: ``host/…/file``, at most `limit` characters."""
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
    """The first three distinct texts, and how many more there are."""
    different = list(dict.fromkeys(texts))
    more = f" and {len(different) - 3} more" if len(different) > 3 else ""
    return ", ".join(different[:3]) + more

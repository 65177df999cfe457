"""Budgets in the form of Lighthouse's `budget.json`, compared with the head of a page.

The format is described in `docs/performance-budgets.md` and `core/config/budget.js` of Lighthouse: a list of
objects with `path`, `options`, `timings` (ms), `resourceSizes` (KiB as transferred) and `resourceCounts`. The
last object whose `path` matches the page applies. `timings` may also name the gate's own moments.
Lighthouse's moments need a browser that paints and runs scripts. The gate reports them as not measured and
checks no budget of them. An unknown name is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from firstflight.errors import UsageError
from firstflight.gate.moments import MomentName
from firstflight.model.page import Page, Resource
from firstflight.model.units import nearest

TIMINGS: dict[str, MomentName] = {"plt": "plt", "first-byte": "first_byte", "stylesheets": "stylesheets"}
"""The moments that a budget can limit, by their name in a budget."""

OF_BROWSERS = (
    "first-contentful-paint",
    "first-meaningful-paint",
    "largest-contentful-paint",
    "speed-index",
    "interactive",
    "max-potential-fid",
    "total-blocking-time",
    "cumulative-layout-shift",
)
"""Lighthouse's timings, which need a browser that paints."""

_MEDIA = ("audio/", "video/")

_TYPES: dict[str, Callable[[Resource], bool]] = {
    "total": lambda _: True,
    "document": lambda one: one.kind in ("document", "frame"),
    "script": lambda one: one.kind == "script",
    "stylesheet": lambda one: one.kind == "style",
    "image": lambda one: one.kind == "image",
    "media": lambda one: one.mime.startswith(_MEDIA),
    "font": lambda one: one.kind == "font",
    "other": lambda one: one.kind in ("xhr", "other") and not one.mime.startswith(_MEDIA),
}

_THIRD_PARTY = "third-party"

_KIB = 1024

Unit = Literal["ms", "KiB", "requests"]


@dataclass(frozen=True)
class Limit:
    """One line of a budget.

    Attributes:
        name: A timing or a type of resources.
        most: The highest permitted value.
        unit: The unit of `most`.
    """

    name: str
    most: float
    unit: Unit


@dataclass(frozen=True)
class Budget:
    """The lines that apply to a page.

    Attributes:
        limits: The lines.
        first_party: The page's own host names, with `*` for labels; empty: those of the document's domain.
    """

    limits: tuple[Limit, ...]
    first_party: tuple[str, ...] = ()


@dataclass(frozen=True)
class Held:
    """The result of one line.

    Attributes:
        limit: The line.
        network: The network of the measurement; empty if the line does not depend on a network.
        value: The measured value, in the line's unit; `None`: it cannot be measured here.
    """

    limit: Limit
    network: str
    value: float | None

    @property
    def is_over(self) -> bool:
        """Whether the value is known and higher than permitted."""
        return self.value is not None and self.value > self.limit.most


def read_budget(file: Path, url: str) -> Budget:
    """Reads the budget of a page.

    Args:
        file: The `budget.json`.
        url: The page's URL.

    Raises:
        UsageError: The file cannot be read, or a value in it is wrong; the message names the place.
    """
    try:
        parsed = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"budget: cannot read {file}: {error}", "name a budget.json") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"budget: {file} is not JSON: {error}", "fix that line") from None
    if not isinstance(parsed, list) or not parsed:
        raise _wrong(str(file), "is not a list of budgets", 'write [{"path": "/*", "timings": [...]}]')
    found: Budget | None = None
    for number, table in enumerate(parsed):
        budget, pattern = _budget(table, f"{file}: [{number}]")
        if _matches(urlsplit(url).path or "/", pattern):
            found = budget
    if found is None:
        raise _wrong(str(file), f"no path of it matches {url[:80]}", 'write "path": "/*" for all pages')
    return found


def hold_sizes(budget: Budget, page: Page) -> list[Held]:
    """The results of the lines about sizes and counts."""
    held = []
    for limit in budget.limits:
        if limit.unit != "ms":
            of_type = [one for one in page.resources if _is_of(limit.name, one, page, budget.first_party)]
            size = sum(one.wire_bytes for one in of_type) / _KIB
            held.append(Held(limit, "", size if limit.unit == "KiB" else len(of_type)))
    return held


def hold_timings(budget: Budget, place: str, moments: Mapping[MomentName, float]) -> list[Held]:
    """The results of the lines about times on a network. A moment missing from `moments` was not measured."""
    return [
        Held(limit, place, moments.get(TIMINGS[limit.name]))
        for limit in budget.limits
        if limit.name in TIMINGS
    ]


def not_measured(budget: Budget) -> list[Held]:
    """The lines that the gate cannot measure."""
    return [Held(limit, "", None) for limit in budget.limits if limit.name in OF_BROWSERS]


def _budget(table: object, place: str) -> tuple[Budget, str]:
    if not isinstance(table, dict):
        raise _wrong(place, "is no object", 'write {"path": "/*", "timings": [...]}')
    allowed = ("path", "options", "timings", "resourceSizes", "resourceCounts")
    _check_keys(table, allowed, place)
    pattern = table.get("path", "/*")
    if not isinstance(pattern, str) or not pattern.startswith("/") or pattern.count("*") > 1:
        raise _wrong(
            f"{place}.path", "is no path with at most one *", 'write "/*", "/shop*" or "/index.html$"'
        )
    options = table.get("options", {})
    if not isinstance(options, dict):
        raise _wrong(f"{place}.options", "is no object", 'write {"firstPartyHostnames": ["*.example.org"]}')
    _check_keys(options, ("firstPartyHostnames",), f"{place}.options")
    hosts = options.get("firstPartyHostnames", [])
    if not isinstance(hosts, list) or not all(isinstance(host, str) and host for host in hosts):
        raise _wrong(
            f"{place}.options.firstPartyHostnames", "is not a list of host names", 'write ["*.example.org"]'
        )
    timings = _limits(table, "timings", "metric", (*TIMINGS, *OF_BROWSERS), "ms", place)
    types = (*_TYPES, _THIRD_PARTY)
    sizes = _limits(table, "resourceSizes", "resourceType", types, "KiB", place)
    counts = _limits(table, "resourceCounts", "resourceType", types, "requests", place)
    return Budget((*timings, *sizes, *counts), tuple(hosts)), pattern


def _limits(  # noqa: PLR0917 (one list of a budget)
    table: dict[str, Any], key: str, name_key: str, known: tuple[str, ...], unit: Unit, place: str
) -> list[Limit]:
    lines = table.get(key, [])
    if not isinstance(lines, list):
        raise _wrong(f"{place}.{key}", "is no list", f'write [{{"{name_key}": "{known[0]}", "budget": 500}}]')
    limits: list[Limit] = []
    for number, line in enumerate(lines):
        at = f"{place}.{key}[{number}]"
        if not isinstance(line, dict):
            raise _wrong(at, "is no object", f'write {{"{name_key}": "{known[0]}", "budget": 500}}')
        _check_keys(line, (name_key, "budget"), at)
        name, most = line.get(name_key), line.get("budget")
        if name not in known:
            raise _wrong(f"{at}.{name_key}", f"{str(name)[:60]!r} is not known", nearest(str(name), known))
        if isinstance(most, bool) or not isinstance(most, int | float) or not 0 <= most < math.inf:
            raise _wrong(f"{at}.budget", f"{str(most)[:60]!r} is no number", f"write a number of {unit}")
        if any(limit.name == name for limit in limits):
            raise _wrong(f"{at}.{name_key}", f"{name} stands here twice", "leave one of them out")
        limits.append(Limit(str(name), float(most), unit))
    return limits


def _check_keys(table: dict[str, Any], allowed: tuple[str, ...], place: str) -> None:
    for key in table:
        if key not in allowed:
            raise _wrong(place, f"unknown key {str(key)[:60]!r}", nearest(str(key), allowed))


def _wrong(place: str, problem: str, hint: str) -> UsageError:
    return UsageError(f"budget: {place}: {problem}", hint)


def _matches(path: str, pattern: str) -> bool:
    """Matches as robots.txt does: by prefix, with `*` for anything and `$` for the end."""
    is_whole, pattern = pattern.endswith("$"), pattern.removesuffix("$")
    start, star, end = pattern.partition("*")
    if not path.startswith(start):
        return False
    rest = path[len(start) :]
    if is_whole:
        return rest.endswith(end) if star else not rest
    return end in rest if star else True


def _is_of(name: str, resource: Resource, page: Page, first_party: tuple[str, ...]) -> bool:
    return not _is_own(resource, page, first_party) if name == _THIRD_PARTY else _TYPES[name](resource)


def _is_own(resource: Resource, page: Page, first_party: tuple[str, ...]) -> bool:
    """Whether a host is the page's own: as configured, or with the document's last two labels."""
    host = urlsplit(resource.url).hostname or ""
    own = first_party or (f"*.{'.'.join((urlsplit(page.url).hostname or '').split('.')[-2:])}",)
    return any(
        host == name.removeprefix("*.") or (name.startswith("*.") and host.endswith(name[1:])) for name in own
    )

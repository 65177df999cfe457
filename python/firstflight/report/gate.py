"""The result of a gate: as text, as a comment in Markdown, and as JUnit XML.

The Markdown uses only what GitHub and GitLab render in a comment: tables, a fence, `<details>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from firstflight.analysis.statistics import FASTER, SLOWER
from firstflight.gate.budget import OF_BROWSERS, Held
from firstflight.gate.judge import Metric, Verdict
from firstflight.gate.result import GateResult, same_within
from firstflight.gate.trials import Cost
from firstflight.report.junit import Case, junit_xml
from firstflight.results import RequestRow
from firstflight.text import plural, visible

_MOMENTS = {"first_byte": "first byte", "stylesheets": "stylesheets", "plt": "page load"}

_MOST_COSTS = 5
_MOST_ROWS = 14
_BAR = 40
_URL = 60


def gate_text(result: GateResult) -> str:
    """The result as lines for a terminal."""
    lines = [
        f"base {result.base}: {_size(result, 0)}",
        f"head {result.head}: {_size(result, 1)}",
        result.caption,
        "",
    ]
    for verdict in result.verdicts:
        lines.append(f"{verdict.place}: {headline(verdict)}")
        lines += [f"    {_moment(metric)}" for metric in verdict.metrics]
        lines += [f"    {_cost(cost)}" for cost in _shown(verdict)]
        if verdict.others_ms is not None:
            lines.append(f"    all other changes together: {verdict.others_ms:+,.0f} ms")
    lines += [f"The clocks disagree on {one}" for one in result.disagreements]
    if not result.changes.found:
        lines.append("Nothing changed that counts.")
    lines += ["", *(_budget(held) for held in result.budgets)] if result.budgets else []
    lines += ["", *(f"Not seen: {one}" for one in result.unseen), ""]
    lines.append(conclusion(result))
    return "\n".join(visible(line) for line in lines) + "\n"


def conclusion(result: GateResult) -> str:
    """Whether the gate passes and, if not, why."""
    if result.exit_code == 0:
        return "The gate holds."
    slower = [verdict.place for verdict in result.verdicts if verdict.verdict == SLOWER]
    why = [f"slower on {', '.join(slower)}"] if slower else []
    why += [f"{plural(len(result.over), 'line')} of the budget exceeded"] if result.over else []
    return f"The gate does not hold: {'; '.join(why)}."


def headline(verdict: Verdict) -> str:
    """The verdict in a few words."""
    within = same_within(verdict)
    if within is not None:
        return f"same within {_ms(within)}"
    moved = [m for m in verdict.metrics if m.verdict == verdict.verdict]
    return f"{verdict.verdict}: " + ", ".join(map(_moved, sorted(moved, key=lambda m: m.name != "plt")))


def _moved(metric: Metric) -> str:
    """By how much a moment is later or earlier: the median, or the value for a quarter of the paths."""
    ends = metric.high_ms if metric.verdict == SLOWER else metric.low_ms
    if abs(ends) > 2 * abs(metric.difference_ms):
        return f"{_MOMENTS[metric.name]} {ends:+,.0f} ms on a quarter of the paths"
    return f"{_MOMENTS[metric.name]} {metric.difference_ms:+,.0f} ms"


def gate_markdown(result: GateResult) -> str:
    """The result as a comment for a pull request."""
    sign = "\N{WHITE HEAVY CHECK MARK}" if result.exit_code == 0 else "\N{CROSS MARK}"
    lines = [f"### {sign} firstflight gate: {_cell(conclusion(result))}", ""]
    lines += [
        "| network | verdict | first byte | stylesheets | page load | requests | kB |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [_row(verdict) for verdict in result.verdicts]
    lines += ["", f"{_cell(result.caption)} Base: `{_code(result.base)}`, head: `{_code(result.head)}`.", ""]
    for one in result.disagreements:
        lines += [f"The clocks disagree on {_cell(one)}", ""]
    if result.changes.found:
        lines += _costs_table(result)
    else:
        lines += ["Nothing changed that counts.", ""]
    if result.budgets:
        lines += ["| budget | on | limit | value |  |", "|---|---|---|---|---|"]
        lines += [_budget_row(held) for held in result.budgets]
        lines.append("")
    if (shown := _most_telling(result)) is not None:
        lines += ["<details>", f"<summary>The head's critical path on {_cell(shown.place)}</summary>", ""]
        lines += ["```", *waterfall(shown), "```", ""]
        lines += ["| request | base, ms | head, ms |", "|---|---|---|"]
        lines += [
            f"| {'**changed** ' if step.is_changed else ''}`{_code(_cut_url(step.url))}` "
            f"| {_or_dash(step.base_ms)} | {_or_dash(step.head_ms)} |"
            for step in shown.steps[: 2 * _MOST_ROWS]
        ]
        lines += ["", "How long the load event waited for each request.", "", "</details>", ""]
    lines += ["<details>", "<summary>What this gate cannot see</summary>", ""]
    lines += [*(f"- {_cell(one)}" for one in result.unseen), "", "</details>"]
    return "\n".join(visible(line) for line in lines) + "\n"


def gate_junit(result: GateResult) -> bytes:
    """JUnit XML: a test for each network and each line of the budget."""
    cases = []
    for verdict in result.verdicts:
        lines = [_moment(metric) for metric in verdict.metrics] + [_cost(cost) for cost in _shown(verdict)]
        case = Case("firstflight.gate", f"{verdict.place} is not slower")
        said, text = headline(verdict), "\n".join(lines)
        if verdict.verdict == SLOWER:
            cases.append(replace(case, outcome="failure", message=said, kind=SLOWER, text=text))
        else:
            cases.append(replace(case, output=f"{said}\n{text}"))
    for held in result.budgets:
        case = Case("firstflight.gate", f"budget {held.limit.name} {held.limit.unit} {held.network}".strip())
        if held.value is None:
            case = replace(case, outcome="skipped", message=_budget(held))
        elif held.is_over:
            case = replace(case, outcome="failure", message=_budget(held), kind="budget")
        cases.append(case)
    properties = {"base": result.base, "head": result.head, "conditions": result.caption}
    return junit_xml("firstflight gate", cases, properties)


def waterfall(verdict: Verdict) -> list[str]:
    """A text chart of the requests on the head's critical path over time."""
    rows = _few(verdict.rows)
    load_ms = next((metric.head_ms for metric in verdict.metrics if metric.name == "plt"), 0.0)
    end_ms = max([load_ms, *(row["end_ms"] or 0.0 for row in verdict.rows)])
    if not end_ms:
        return []
    names = [_code(_cut_url(row["url"], 36)) for row in rows]
    width = max(map(len, names), default=0)
    lines = [f"{'':{width}}  0{f'{end_ms:,.0f} ms':>{_BAR - 1}}"]
    lines += [f"{name:{width}}  {_bar(row, end_ms)}" for name, row in zip(names, rows, strict=True)]
    left = len(verdict.rows) - len(rows)
    lines += [f"({plural(left, 'request')} in between left out)"] if left else []
    return [*lines, "- waits for a connection or opens one, = waits for the server, # receives"]


def _bar(row: RequestRow, end_ms: float) -> str:
    """The bar of a request: waiting, requested, receiving."""
    marks = [" "] * _BAR
    queued, sent, first, end = (row["queued_ms"], row["sent_ms"], row["first_byte_ms"], row["end_ms"])
    for mark, start, stop in (("-", queued, sent), ("=", sent, first), ("#", first, end)):
        if start is None or stop is None:
            continue
        a = min(_BAR - 1, int(start / end_ms * _BAR))
        b = max(a + 1, min(_BAR, round(stop / end_ms * _BAR)))
        marks[a:b] = mark * (b - a)
    return "".join(marks).rstrip()


def _few(rows: Sequence[RequestRow]) -> list[RequestRow]:
    if len(rows) <= _MOST_ROWS:
        return list(rows)
    return [*rows[: _MOST_ROWS // 2], *rows[-(_MOST_ROWS - _MOST_ROWS // 2) :]]


def _cut_url(url: str, most: int = _URL) -> str:
    """A URL without scheme and query values, shortened in its middle."""
    bare = visible(re.sub(r"^https?://", "", url).partition("?")[0])
    return bare if len(bare) <= most else f"{bare[: most // 2 - 2]}...{bare[-(most - most // 2 - 1) :]}"


def _size(result: GateResult, side: int) -> str:
    page = (result.changes.base, result.changes.head)[side]
    size = sum(resource.wire_bytes for resource in page.resources)
    return f"{page.url[:100]}, {plural(len(page.resources), 'request')}, {size / 1000:,.0f} kB"


def _moment(metric: Metric) -> str:
    half = f" (half of the pairs {metric.low_ms:+,.0f} to {metric.high_ms:+,.0f})"
    spread = half if metric.high_ms - metric.low_ms >= 1 else ""
    whole = metric.head_ms - metric.base_ms
    one = ", one of them" if metric.name == "stylesheets" and metric.difference_ms - abs(whole) >= 1 else ""
    return (
        f"{_MOMENTS[metric.name]}: {metric.base_ms:,.0f} to {metric.head_ms:,.0f} ms{one}, "
        f"{metric.difference_ms:+,.0f} ms{spread}: {metric.verdict}"
    )


def _shown(verdict: Verdict) -> Sequence[Cost]:
    return verdict.costs[:_MOST_COSTS]


def _cost(cost: Cost) -> str:
    on = ", on the critical path" if cost.is_on_path else ""
    return f"{cost.ms:+,.0f} ms: {_cut_url(cost.change.url)}: {cost.change.words}{on}"


def _ms(value: float) -> str:
    return f"{value:,.0f} ms" if value >= 1 or not value else "1 ms"


def _budget(held: Held) -> str:
    limit, on = held.limit, f" on {held.network}" if held.network else ""
    if held.value is None:
        why = "no browser paints here" if limit.name in OF_BROWSERS else "on the kernel only plt is"
        return f"budget: {limit.name}{on}: not measured: {why}"
    word = "over" if held.is_over else "within"
    return f"budget: {limit.name}{on}: {held.value:,.0f} {limit.unit}, {word} {limit.most:,.0f}"


def _row(verdict: Verdict) -> str:
    cells = []
    for name in _MOMENTS:
        metric = next((m for m in verdict.metrics if m.name == name), None)
        cells.append(
            ""
            if metric is None
            else f"{metric.base_ms:,.0f} → {metric.head_ms:,.0f} ms ({metric.difference_ms:+,.0f})"
        )
    bold = f"**{verdict.verdict}**" if verdict.verdict in (SLOWER, FASTER) else _cell(headline(verdict))
    requests = f"{verdict.base.requests} → {verdict.head.requests}"
    size = f"{verdict.base.bytes_down / 1000:,.0f} → {verdict.head.bytes_down / 1000:,.0f}"
    return f"| {_cell(verdict.place)} | {bold} | {' | '.join(cells)} | {requests} | {size} |"


def _costs_table(result: GateResult) -> list[str]:
    """The cost of each change on each network, the largest first."""
    simulated = {verdict.network: verdict for verdict in result.verdicts}
    first = list(simulated.values())
    order = sorted(
        {cost.change.url: cost for verdict in first for cost in verdict.costs}.values(),
        key=lambda cost: -max(abs(c.ms) for v in first for c in v.costs if c.change is cost.change),
    )
    lines = [
        f"| request | what changed | {' | '.join(f'cost on {_cell(name)}' for name in simulated)} |",
        f"|---|---|{'---|' * len(simulated)}",
    ]
    for cost in order[:_MOST_COSTS]:
        costs = [next((c for c in v.costs if c.change is cost.change), None) for v in first]
        cells = " | ".join("" if c is None else f"{c.ms:+,.0f} ms" for c in costs)
        lines.append(f"| `{_code(_cut_url(cost.change.url))}` | {_cell(cost.change.words)} | {cells} |")
    left = len(result.changes.found) - min(_MOST_COSTS, len(order))
    return [
        *lines,
        "",
        *([f"{plural(left, 'further change')}: `--json` lists them.", ""] if left > 0 else []),
    ]


def _budget_row(held: Held) -> str:
    value = "not measured" if held.value is None else f"{held.value:,.0f} {held.limit.unit}"
    said = "" if held.value is None else "**over**" if held.is_over else "within"
    limit = f"{held.limit.most:,.0f} {held.limit.unit}"
    return f"| {held.limit.name} | {_cell(held.network)} | {limit} | {value} | {said} |"


def _most_telling(result: GateResult) -> Verdict | None:
    """The first network on which the head is slower, else the first."""
    slower: Iterable[Verdict] = (verdict for verdict in result.verdicts if verdict.verdict == SLOWER)
    return next(iter(slower), result.verdicts[0] if result.verdicts else None)


def _or_dash(ms: float | None) -> str:
    return "" if ms is None else f"{ms:,.0f}"


def _cell(text: str) -> str:
    """Escapes text for Markdown, since pages are not trusted."""
    return re.sub(r"([\\`*_{}\[\]<>#|~@!])", r"\\\1", visible(text))


def _code(text: str) -> str:
    """Escapes text for backticks within a table."""
    return visible(text).replace("`", "'").replace("|", "%7C")

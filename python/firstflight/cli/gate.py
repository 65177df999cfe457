"""`firstflight gate`: whether the head of a page is slower than its base."""

import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from firstflight.analysis.changes import (
    NOISE_MS,
    UNTIMED,
    WITH_TIMES,
    Changes,
    check_times,
    find_changes,
)
from firstflight.cli.app import main
from firstflight.cli.console import progress
from firstflight.cli.plan_flags import default_text
from firstflight.cli.talk import Talk, show_json
from firstflight.errors import LabError, PageInputError, UsageError
from firstflight.experiment.interrupt import Interrupted, interruptible
from firstflight.experiment.plan_file import presets
from firstflight.gate.budget import Budget, Held, hold_sizes, hold_timings, not_measured, read_budget
from firstflight.gate.judge import TOLERANCE_MS, Judge, Verdict, check_repeats
from firstflight.gate.moments import NAMES
from firstflight.gate.result import GateResult, unseen
from firstflight.gate.trials import Trials, networks
from firstflight.model.page import Page
from firstflight.model.units import BadValueError, parse_rtt
from firstflight.pages import load_page, under
from firstflight.pages.sources import is_url
from firstflight.report.gate import gate_junit, gate_markdown, gate_text
from firstflight.results import check_writable, write_whole

_SIGNALLED = 128
"""An exit code after a signal is this plus the signal's number."""

_ENGINES = {"simulate": ["simulate"], "emulate": ["emulate"], "both": ["simulate", "emulate"]}


def complete_network(incomplete: str) -> list[str]:
    """Completes names of paths, also after a comma."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in presets() if name.startswith(last)]


def command(  # noqa: PLR0917 (each is a flag)
    base: Annotated[
        list[str],
        typer.Option(
            "--base", metavar="PAGE", help="The page before the change: a recording or a URL; repeatable."
        ),
    ],
    head: Annotated[
        list[str],
        typer.Option("--head", metavar="PAGE", help="The page after the change; repeatable."),
    ],
    network: Annotated[
        str,
        typer.Option("--network", metavar="NAME,...", help="Paths by name.", autocompletion=complete_network),
    ] = "cable,4g",
    budget: Annotated[
        Path | None,
        typer.Option("--budget", metavar="FILE", help="Budgets, in the format of Lighthouse's budget.json."),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="simulate|emulate|both",
            help="simulate: predict. emulate: measure on the kernel. both: do both.",
        ),
    ] = "simulate",
    tolerance: Annotated[
        str, typer.Option("--tolerance", metavar="MS", help="Differences up to this count as no change.")
    ] = f"{TOLERANCE_MS:g}",
    noise: Annotated[
        str,
        typer.Option(
            "--noise",
            metavar="MS",
            help="Differences of a request's recorded times up to this count as no change.",
        ),
    ] = f"{NOISE_MS:g}",
    http: Annotated[
        str,
        typer.Option(
            "--http", metavar="1.1|2|recorded", help="HTTP version over TLS of all hosts, or as recorded."
        ),
    ] = "recorded",
    repeats: Annotated[
        str,
        typer.Option("--repeats", metavar="N", help="With emulate: number of load pairs on each network."),
    ] = default_text("repeats"),
    seed: Annotated[str, typer.Option("--seed", metavar="N", help="Seed of all random choices.")] = "1",
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE.xml", help="Also write JUnit XML.")
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", metavar="FILE.md", help="Also write a comment for a pull request."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No notes, no progress.")] = False,
) -> int:
    """Check whether a page became slower, and why.

    Exit code 0: not slower and within budget; 1: slower, or over budget; 2: the call was wrong.
    """
    talk = Talk(quiet=quiet)
    engines = _engines(engine)
    tolerance_ms, noise_ms = _time("tolerance", tolerance), _time("noise", noise)
    names = [name for name in network.split(",") if name]
    if not names:
        raise UsageError("network: none is named", "write --network cable,4g")
    keys: dict[str, object] = {"mode": "tcp", "repeats": repeats, "seed": seed, "scheme": "recorded"}
    several = networks(names, {**keys, "http": http})
    if "emulate" in engines:
        check_repeats(several)
    for file in filter(None, (markdown, junit)):
        check_writable(file)
    _warn_of_one_file(base, head, talk)
    if budget and is_url(head[0]):
        read_budget(budget, head[0])
    try:
        with interruptible():
            with tempfile.TemporaryDirectory(prefix="firstflight-") as folder:
                bases = _open(base, Path(folder) / "base", talk)
                heads = _open(head, Path(folder) / "head", talk)
            _check_times([*zip((*base, *head), (*bases, *heads), strict=True)], talk)
            changes = find_changes(bases, heads, noise_ms)
            held_to = read_budget(budget, heads[0].url) if budget else None
            if http == "recorded" and not _tells_http(bases[0], talk):
                http = "2"
                several = networks(names, {**keys, "http": http})
            if "emulate" in engines and not changes.found:
                talk.note("no change counts, so no page is loaded on the real kernel")
                engines = ["simulate"]
            with progress(talk) as shown:
                verdicts = Judge(Trials(changes), tolerance_ms, shown).on(several, engines)
    except LabError as error:
        raise LabError(error.message, f"{error.hint}; or predict, without it: --engine simulate") from error
    except Interrupted as stop:
        talk.error(f"stopped by {signal.Signals(stop.signal).name}: there is no verdict")
        return _SIGNALLED + stop.signal
    spoken = "the HTTP version of each host as recorded" if http == "recorded" else f"HTTP/{http} over TLS"
    result = GateResult(
        ", ".join(base),
        ", ".join(head),
        changes,
        tuple(verdicts),
        tuple(_held(held_to, changes, verdicts)),
        tolerance_ms,
        noise_ms,
        f"A first visit with {spoken}, tolerance {tolerance_ms:g} ms, "
        f"recorded times equal within {noise_ms:g} ms.",
        unseen(bases[0], engines, min(len(bases), len(heads))),
    )
    if markdown:
        write_whole(markdown, gate_markdown(result).encode())
    if junit:
        write_whole(junit, gate_junit(result))
    if as_json:
        show_json(result.to_json())
    else:
        print(gate_text(result), end="")  # noqa: T201
    return result.exit_code


def _engines(engine: str) -> list[str]:
    if engine not in _ENGINES:
        raise UsageError(f"engine: {engine[:60]} is not an engine", f"write {', '.join(_ENGINES)}")
    return _ENGINES[engine]


def _time(name: str, text: str) -> float:
    try:
        return float(parse_rtt(text))
    except BadValueError as error:
        raise UsageError(f"{name}: {error.problem}", "write ms, such as 10") from None


def _warn_of_one_file(base: list[str], head: list[str], talk: Talk) -> None:
    for twice in sorted({*base} & {*head}):
        if not is_url(twice):
            talk.warn(f"{twice} is both base and head: there is no difference to find", "name two recordings")


def _tells_http(page: Page, talk: Talk) -> bool:
    """Whether the recording has the HTTP version of its TLS hosts, or has no TLS hosts; warns if not."""
    if page.tells_http:
        return True
    talk.warn(
        "base: the recording does not say which version of HTTP its hosts spoke; gate uses HTTP/2 for all",
        "choose it with --http 1.1 or 2, or record the page again",
    )
    return False


def _check_times(named: Sequence[tuple[str, Page]], talk: Talk) -> None:
    """Refuses to compare recordings that have times with recordings that have none."""
    if not check_times(named):
        talk.warn(UNTIMED, WITH_TIMES)


def _open(specs: list[str], file: Path, talk: Talk) -> list[Page]:
    """One page for each recording; pages given as URLs are recorded first."""
    pages = []
    for number, spec in enumerate(specs):
        name = spec
        if is_url(spec):
            name = f"{file}-{number}.wacz"
            code = main(["record", spec, "--out", name, *(["--quiet"] if talk.quiet else [])])
            if code > _SIGNALLED:
                raise Interrupted(code - _SIGNALLED)
            if code:
                raise PageInputError(
                    f"{spec[:80]}: could not be recorded",
                    "record it with firstflight record, which has more flags, and name the file",
                )
        found = load_page(name)
        if len(found) != 1:
            raise UsageError(
                f"{spec[:80]}: holds {len(found)} pages", f"name one: '{spec[:80]}#{found[0].page.url}'"
            )
        for note in found[0].notes:
            talk.note(f"{spec}: {note}")
        pages.append(under("recorded", found[0]).page)
    return pages


def _held(budget: Budget | None, changes: Changes, verdicts: list[Verdict]) -> list[Held]:
    if budget is None:
        return []
    held = hold_sizes(budget, changes.head)
    for verdict in verdicts:
        # A page without stylesheets waits for none. On the real kernel only the page load is measured.
        none = dict.fromkeys(NAMES, 0.0) if verdict.engine == "simulate" else {}
        held += hold_timings(budget, verdict.place, none | {m.name: m.head_ms for m in verdict.metrics})
    return [*held, *not_measured(budget)]

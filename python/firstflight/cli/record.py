"""`firstflight record`: records pages of the network into an archive."""

import signal
import tempfile
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from firstflight.cli.console import progress
from firstflight.cli.talk import Talk, show_json
from firstflight.engines.clients.chromium.browser import check_sandbox, find_browser
from firstflight.errors import UsageError
from firstflight.experiment.interrupt import Interrupted, interruptible
from firstflight.pages.profile import read_pages_list
from firstflight.pages.record.browse import Browsing, Visit, visit
from firstflight.pages.record.package import write_wacz
from firstflight.pages.urls import check_url
from firstflight.results import check_writable
from firstflight.text import plural

_SHOWN = 20
"""How many losses are printed; `--json` has all of them."""


def command(
    urls: Annotated[
        list[str], typer.Argument(metavar="URL...", help="Pages, or a FILE.pages that lists them.")
    ],
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="FILE.wacz", help="Where to write the archive.")
    ],
    *,
    browser: Annotated[
        str, typer.Option("--browser", metavar="PATH", help="The browser [the system's Chromium].")
    ] = "",
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=1, help="Time limit for a page.")
    ] = 60.0,
    retries: Annotated[
        int,
        typer.Option(
            "--retries",
            metavar="N",
            min=0,
            max=20,
            help="How often to retry a page that failed or is incomplete.",
        ),
    ] = 1,
    no_browser_sandbox: Annotated[
        bool,
        typer.Option(
            "--no-browser-sandbox",
            help="Run Chromium without its own sandbox. Only for pages that you trust.",
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was recorded as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No notes, no progress.")] = False,
) -> int:
    """Record pages with Chromium.

    Writes a WACZ with bodies and header fields as on the wire, initiators and times. Every command accepts it
    as a PAGE.
    """
    talk = Talk(quiet=quiet)
    wanted = _wanted(urls)
    _check_out(out, force=force)
    browsing = Browsing(find_browser(browser), round(timeout * 1000), sandbox=not no_browser_sandbox)
    check_sandbox(browsing.sandbox, talk.warn)
    with tempfile.TemporaryDirectory(prefix="firstflight-", ignore_cleanup_errors=True) as folder:
        visits, stopped = _visit_all(wanted, browsing, Path(folder), retries, talk)
        try:
            with interruptible():
                written = _write(out, visits)
        except Interrupted as interrupted:
            written, stopped = 0, interrupted.signal
    if as_json:
        show_json({"file": str(out) if written else None, "pages": [_described(visit) for visit in visits]})
    return _end(out, wanted, written, stopped, talk)


def _wanted(arguments: Iterable[str]) -> list[str]:
    """The URLs, including those of lists, each once."""
    found: list[str] = []
    for argument in arguments:
        if argument.endswith(".pages") and "://" not in argument:
            found += read_pages_list(Path(argument))
        else:
            check_url(argument, place="record")
            found.append(argument)
    return list(dict.fromkeys(found))


def _check_out(out: Path, *, force: bool) -> None:
    """Checks, before anything is loaded, that the file can be written."""
    if out.suffix.lower() != ".wacz":
        raise UsageError(f"{out}: an archive is a .wacz file", f"name it {out.name or 'page'}.wacz")
    if out.is_dir() or (out.exists() and not force):
        raise UsageError(f"{out} exists", "name another file, or replace it with --force")
    check_writable(out)


def _visit_all(
    urls: list[str], browsing: Browsing, folder: Path, retries: int, talk: Talk
) -> tuple[list[Visit], int | None]:
    """All pages, or those before a signal, and the signal."""
    visits: list[Visit] = []
    with progress(talk) as shown:
        try:
            with interruptible():
                for number, url in enumerate(urls, start=1):

                    def starting(attempt: int, number: int = number, url: str = url) -> None:
                        again = f", attempt {attempt}" if attempt > 1 else ""
                        shown.begin(f"page {number} of {len(urls)}{again}: {url[:100]}")

                    made = visit(url, browsing, folder / f"{number}", retries=retries, starting=starting)
                    visits.append(made)
                    _say(made, talk)
        except Interrupted as interrupted:
            return visits, interrupted.signal
    return visits, None


def _write(out: Path, visits: list[Visit]) -> int:
    """Writes the pages that were received; returns their number."""
    had = [visit for visit in visits if visit.had]
    if had:
        write_wacz(out, had)
    return len(had)


def _say(made: Visit, talk: Talk) -> None:
    """Prints the result of one page on stderr, at once."""
    if not made.had:
        talk.error(f"{made.asked}: {made.problem}", "check the URL; a slow page may need --timeout")
        return
    size = sum(pair.exchange.body_bytes for pair in made.pairs)
    tries = f", {made.attempts} attempts" if made.attempts > 1 else ""
    talk.note(f"{made.url}: {plural(len(made.pairs), 'request')}, {size / 1000:,.0f} kB{tries}")
    if made.problem:
        talk.warn(f"{made.url}: {made.problem}")
    if made.lost:
        talk.warn(f"{made.url}: {plural(len(made.lost), 'request')} could not be recorded")
    for lost in made.lost[:_SHOWN]:
        talk.say(f"  {lost.reason}: {lost.method} {lost.url[:200]}")
    if len(made.lost) > _SHOWN:
        talk.say(f"  and {len(made.lost) - _SHOWN} more: --json lists them")


def _described(made: Visit) -> dict[str, object]:
    return {
        "asked": made.asked,
        "url": made.url if made.had else None,
        "problem": made.problem or None,
        "attempts": made.attempts,
        "requests": len(made.pairs),
        "body_bytes": sum(pair.exchange.body_bytes for pair in made.pairs),
        "plt_ms": made.drive.plt_ms,
        "lost": [asdict(lost) for lost in made.lost],
    }


def _end(out: Path, wanted: list[str], written: int, stopped: int | None, talk: Talk) -> int:
    if written:
        talk.note(f"wrote {out}: {written} of {plural(len(wanted), 'page')}")
    if stopped is not None:
        kept = f"{out} has the pages recorded before" if written else "nothing was written"
        talk.error(f"stopped by {signal.Signals(stopped).name}; {kept}")
        return 128 + stopped
    return 0 if written == len(wanted) else 1

"""What a notebook needs: a page, a path, one load or a whole plan, and the results as frames and figures.

Everything here is re-exported by the package: `import firstflight as ff`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any, Literal, overload

from firstflight.analysis import SIDES, CellPair, cell_pairs, summarize, summarize_pairs
from firstflight.analysis.records import Cell, Summary
from firstflight.deferred import altair as alt
from firstflight.deferred import polars as pl
from firstflight.engines.engine import Record
from firstflight.engines.simulate import Simulator
from firstflight.errors import ExperimentError, UsageError
from firstflight.experiment.catalogue import Catalogue, read_catalogue
from firstflight.experiment.folder import default_folder
from firstflight.experiment.plan_file import PlanFile, read_plan, resolve
from firstflight.experiment.recorder import Outcome, make_block
from firstflight.experiment.run import run_experiment
from firstflight.experiment.schedule import Block, Schedule, load_id, load_under
from firstflight.experiment.setup import EngineSetup, page_check, workers_for
from firstflight.experiment.workers.pool import cores
from firstflight.model.path import Path
from firstflight.model.plan import Plan
from firstflight.model.treatment import FAST_OPEN, ModeName
from firstflight.observer import Observer
from firstflight.pages import LoadedPage, Page, open_pages, under
from firstflight.report.figures import waterfall as waterfalls
from firstflight.report.figures.overviews import improvement_by_rtt, plt_by_rtt
from firstflight.results import Journal, LoadRecord, LoadRow, journal_path
from firstflight.results.records import plt_ms
from firstflight.results.schema import TREATMENT
from firstflight.results.tables import connection_frame, load_frame, request_frame, write_tables

Mode = ModeName
EngineName = Literal["emulate", "simulate"]


@dataclass(frozen=True)
class Load:
    """One page loaded once.

    Attributes:
        record: The whole record, as in a journal line: `load`, `requests`, `connections`, `proof`, `relay`.
    """

    record: Record

    @property
    def plt_ms(self) -> float:
        """Page load time, ms.

        Raises:
            ExperimentError: The load failed; the message says why.
        """
        load = self.record["load"]
        if load["status"] != "ok":
            raise ExperimentError(f"load {load['load_id']} failed: {load['error']}")
        return plt_ms(self.record)

    @property
    def row(self) -> LoadRow:
        """The load's row of the loads table; docs/results.md names the columns."""
        return self.record["load"]

    @property
    def requests(self) -> pl.DataFrame:
        """A frame with one row per request; docs/results.md names the columns."""
        return request_frame([self.record])

    @property
    def connections(self) -> pl.DataFrame:
        """A frame with one row per connection; docs/results.md names the columns."""
        return connection_frame([self.record])


class Results:
    """The loads of a plan, from a results folder or from `simulate`, which keeps them in memory."""

    def __init__(self, folder: FilePath | None = None, records: Sequence[LoadRecord] = ()) -> None:
        self._folder = folder
        self._made = records

    @property
    def folder(self) -> FilePath:
        """Path of the results folder.

        Raises:
            UsageError: The loads are in memory.
        """
        if self._folder is None:
            raise UsageError("these results are in memory, in no folder", "make them with run(plan, out=DIR)")
        return self._folder

    @property
    def loads(self) -> pl.DataFrame:
        """A frame with one row per load."""
        return self._table("loads")

    @property
    def requests(self) -> pl.DataFrame:
        """A frame with one row per request of every load."""
        return self._table("requests")

    @property
    def connections(self) -> pl.DataFrame:
        """A frame with one row per connection of every load."""
        return self._table("connections")

    @cached_property
    def pairs(self) -> list[CellPair]:
        """One pair per page, path and treatment: its loads and the baseline's, paired by block."""
        return cell_pairs(self._records())

    @cached_property
    def summary(self) -> Summary:
        """The content of `summary.json`: `cells` and `warnings`."""
        return summarize(self.folder) if self._folder else summarize_pairs(self.pairs)

    @property
    def cells(self) -> pl.DataFrame:
        """A frame with one row per cell pair: medians in ms, improvement and interval as fractions, verdict.

        `baseline_ms` and `treatment_ms` are the medians; `baseline` and `treatment` are names.
        """
        return pl.DataFrame([_cell_row(cell) for cell in self.summary["cells"]], infer_schema_length=None)

    def improvement_by_rtt(self) -> alt.TopLevelMixin:
        """Chart of the improvement by RTT, one panel per page; with the paper's values for its pages."""
        return _chart(improvement_by_rtt([cell for cell in self.summary["cells"] if cell["n"]]))

    def plt_by_rtt(self) -> alt.TopLevelMixin:
        """Chart of the median PLT by RTT, one panel per page and one line per treatment."""
        return _chart(plt_by_rtt(self.summary["cells"]))

    def _records(self) -> Sequence[LoadRecord]:
        return Journal(journal_path(self._folder)).records() if self._folder else self._made

    def _table(self, name: str) -> pl.DataFrame:
        """The table's file if it is at least as new as the journal; else the table, made from the loads."""
        if self._folder:
            file, journal = self._folder / f"{name}.parquet", journal_path(self._folder)
            if file.is_file() and file.stat().st_mtime >= journal.stat().st_mtime:
                return pl.read_parquet(file)
        return _FRAMES[name](self._records())


_FRAMES = {"loads": load_frame, "requests": request_frame, "connections": connection_frame}


def load_page(page: str | os.PathLike[str]) -> LoadedPage:
    """Opens one page.

    Args:
        page: An embedded name (`amazon`, `nytimes`, `wsj`, `wikipedia`), an archive, a mirror or a profile.

    Raises:
        PageInputError: The page cannot be read.
        UsageError: The archive holds several pages.
    """
    [first, *others] = open_pages([os.fspath(page)])
    if others:
        raise UsageError(f"{page}: holds {1 + len(others)} pages", "name one as 'DIR#http://host/path'")
    return first


def path(
    rtt_ms: float = 100,
    down: str = "4mbit",
    up: str = "",
    *,
    topology: Literal["access", "star"] = "access",
    loss: float = 0,
    queue: str = "1000p",
    middlebox: str = "off",
    down_trace: str | os.PathLike[str] = "",
    up_trace: str | os.PathLike[str] = "",
) -> Path:
    """A path between the client and every origin.

    Args:
        rtt_ms: Round-trip time, ms.
        down: Rate towards the client, such as `4mbit` or `unlimited`.
        up: Rate from the client; empty: 256 kbit/s, or with `star` the same as `down`.
        topology: `access`: one link for all origins. `star`: a symmetric link for each origin.
        loss: Share of packets lost in each direction.
        queue: Queue in front of each link, such as `1000p`, `64kB`, `100ms` or `codel`.
        middlebox: A middlebox, such as `drop-data` or `strip-option:0.3`.
        down_trace: File in Mahimahi's format with the link's delivery times, used instead of `down`.
        up_trace: The same for the link from the client, used instead of `up`.

    Raises:
        UsageError: A value is wrong.
    """
    keys = {"rtt": rtt_ms, "topology": topology, "loss": loss, "queue": queue, "middlebox": middlebox}
    keys |= {"down_trace": os.fspath(down_trace)} if down_trace else {"down": down}
    keys |= {"up_trace": os.fspath(up_trace)} if up_trace else {"up": up} if up else {}
    [found] = resolve(keys).paths()
    return found


def emulate(page: LoadedPage, path: Path, mode: Mode = FAST_OPEN, **keys: object) -> Load:
    """Loads a page once with the real kernel over an emulated path. The call takes as long as the load.

    Args:
        page: A page from `load_page`.
        path: A path from `path`.
        mode: Mode of transport, as in a plan.
        keys: Other keys of a plan, such as `client="chromium"`, `cookies="cold"`, `seed=2`.

    Raises:
        UsageError: A key is wrong.
        LabError: The laboratory could not be built, or died.
    """
    return _load("emulate", page, path, mode, keys)


@overload
def simulate(page: LoadedPage, path: Path, mode: Mode = FAST_OPEN, **keys: object) -> Load: ...
@overload
def simulate(page: Plan | str | os.PathLike[str] | None = None, **keys: object) -> Results: ...
def simulate(
    page: LoadedPage | Plan | str | os.PathLike[str] | None = None,
    path: object = None,
    mode: object = None,
    **keys: object,
) -> Load | Results:
    """Simulates one load of a page, or all loads of a plan; docs/simulator.md says how accurate that is.

    `simulate(page, path)` takes what `emulate` takes and returns a `Load`. `simulate(plan)` takes a plan, a
    TOML file, or keys alone. It makes every load of the plan and returns `Results` in memory; it writes no
    folder.

    Args:
        page: A page from `load_page`; or a plan, as `run` takes it.
        path: A path from `path`, if a page is loaded once.
        mode: Mode of transport, as in a plan.
        keys: Other keys of a plan. With a plan, `pages` may also hold what `load_page` returns, and a `Page`
            made in Python.

    Raises:
        UsageError: A key is wrong, or the plan has `until`, which only `run` supports.
    """
    if not isinstance(page, LoadedPage):
        given = {"path": path, "mode": mode, **keys}
        return _simulated(page, {key: value for key, value in given.items() if value is not None})
    if not isinstance(path, Path):
        raise UsageError("simulate: a page without a path", "give one: simulate(page, path(rtt_ms=100))")
    return _load("simulate", page, path, FAST_OPEN if mode is None else mode, keys)


def waterfall(baseline: Load, treatment: Load) -> alt.TopLevelMixin:
    """Chart of every request of two loads of a page, side by side. They may differ in mode or other keys.

    Raises:
        UsageError: The loads are not of the same page, path and engine, or not both ok.
    """
    pair = _pair(baseline, treatment)
    return _chart(waterfalls.waterfall(pair, summarize_pairs([pair])["cells"][0]))


def run(
    plan: Plan | str | os.PathLike[str] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    scheduler: str = "",
    browser_sandbox: bool = True,
    say: Callable[[str], None] = print,
    **keys: object,
) -> Results:
    """Runs a plan, as `firstflight run` does.

    Args:
        plan: A plan, or its TOML file; by default the paper's experiment.
        out: The results folder; by default `results/<time>`.
        resume: Whether to make the loads that are missing in the folder.
        scheduler: Address of a Dask scheduler; empty: this machine.
        browser_sandbox: Whether Chromium must have its own sandbox; `False` for pages that you trust.
        say: Function that `run` calls with each note (such as decisions of page readers), warning and hint.
        keys: Keys of a plan (docs/plan.md) that override `plan`: `pages=["amazon"]`, `rtt=[20, 100]`.

    Raises:
        UsageError: The call is wrong; nothing was started.
        ExperimentError: The run failed or was stopped; or a load has no result, or no proof of its treatment;
            or no load of a cell succeeded. The folder keeps what was measured.
    """
    if resume and not out:
        raise UsageError("resume=True requires out", "name the results folder of the run: out=...")
    wanted = _plan(plan, keys)
    folder = FilePath(out) if out else default_folder()
    setup = EngineSetup.of(wanted, folder, browser_sandbox=browser_sandbox)
    versions = setup.versions()
    observer = _Sayer(say)
    with workers_for(wanted, setup, scheduler, observer.warn) as workers:
        pages = read_catalogue(wanted, observer, page_check(wanted, setup, scheduler))
        outcome = run_experiment(
            wanted, pages, workers, folder, resume=resume, clients=versions, observer=observer
        )
    _check(outcome, folder)
    write_tables(folder)
    return Results(folder)


def _check(outcome: Outcome, folder: FilePath) -> None:
    """Raises `ExperimentError` if `firstflight run` would exit with another code than 0."""
    resume = "continue with resume=True"
    if outcome.signal is not None:
        raise ExperimentError(f"stopped with {outcome.made} of {outcome.planned} loads made", resume)
    if problems := outcome.problems():
        problem, line = next(iter(problems.items()))
        kept = f"what was measured is in {folder}: open_results"
        raise ExperimentError(line, resume if problem == "left" else kept)


def open_results(folder: str | os.PathLike[str]) -> Results:
    """Opens a results folder that a run has written.

    Raises:
        UsageError: The folder holds no results.
    """
    return Results(journal_path(FilePath(folder)).parent)


class _Sayer(Observer):
    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def note(self, text: str) -> None:
        self._say(text)

    def warn(self, message: str, hint: str = "") -> None:
        self._say(f"warning: {message}")
        if hint:
            self._say(f"hint: {hint}")


def _simulated(given: Plan | str | os.PathLike[str] | None, keys: dict[str, object]) -> Results:
    pages = _opened(keys.get("pages"))
    if pages:
        keys = {**keys, "pages": [page.page.name for page in pages]}
    plan = _plan(given, {**keys, "engine": "simulate"})
    if plan.until != "off":
        raise UsageError("until: simulate makes every repeat of a plan", "set until to off, or use run")
    catalogue = (
        Catalogue.of(_under_the_only(plan.schemes, pages)) if pages else read_catalogue(plan, Observer())
    )
    engine = Simulator(plan.keep)

    def make(block: Block) -> list[Record]:
        records: list[Record] = []
        make_block(engine, catalogue.open, block, lambda planned: 0, records.append)
        return records

    with ThreadPoolExecutor(cores() if plan.jobs == "auto" else plan.jobs) as threads:
        made = threads.map(make, Schedule(plan, catalogue.names))
        return Results(records=[record for records in made for record in records])


def _opened(pages: object) -> list[LoadedPage]:
    """The pages of a list with at least one page object; empty if all entries are names."""
    several = list(pages) if isinstance(pages, Iterable) and not isinstance(pages, str) else []
    if not any(isinstance(page, Page | LoadedPage) for page in several):
        return []
    opened: list[LoadedPage] = []
    for page in several:
        match page:
            case LoadedPage():
                opened.append(page)
            case Page():
                opened.append(LoadedPage(page))
            case _:
                opened += open_pages([str(page)])
    return opened


def _under_the_only(schemes: tuple[str, ...], pages: list[LoadedPage]) -> list[LoadedPage]:
    return [under(schemes[0], page) for page in pages] if len(schemes) == 1 else pages


def _plan(plan: Plan | str | os.PathLike[str] | None, keys: dict[str, object]) -> Plan:
    if isinstance(plan, Plan):
        return resolve(keys, PlanFile(values=plan.to_keys()))
    return resolve(keys, read_plan(FilePath(plan)) if plan else None)


def _load(engine: EngineName, page: LoadedPage, path: Path, mode: object, keys: dict[str, object]) -> Load:
    plan = resolve({"topology": path.topology, **keys, "engine": engine, "mode": mode})
    page = under(plan.scheme, page)
    planned = replace(
        load_under(plan),
        load_id=load_id(page.page.name, path, plan.mode[0], 1),
        page=page.page.name,
        path=path,
        cookies=_only("cookies", plan.cookies),
    )
    return Load(EngineSetup.of(plan, FilePath())().load(planned, page))


def _only(key: str, values: tuple[str, ...]) -> str:
    if len(values) > 1:
        raise UsageError(f"{key}: one load takes one value", "measure several with run")
    return values[0]


def _pair(baseline: Load, treatment: Load) -> CellPair:
    names = _names(baseline.row, treatment.row)
    records = [
        _named(load.record, name, names[0]) for load, name in zip((baseline, treatment), names, strict=True)
    ]
    pairs = cell_pairs(records)
    if len(pairs) == 1 and all(pairs[0].ok[side] for side in SIDES) and pairs[0].blocks:
        return pairs[0]
    raise UsageError(
        "waterfall: the two loads cannot be compared",
        "give two different loads of the same page, path and engine, both ok, the baseline first",
    )


def _names(*rows: Mapping[str, Any]) -> list[str]:
    """Names of two loads: their modes, or the keys of a plan in which they differ."""
    if rows[0]["mode"] != rows[1]["mode"]:
        return [row["mode"] for row in rows]
    differ = [c.name for c in TREATMENT if rows[0][c.name] != rows[1][c.name]]
    names = [" ".join(f"{name}={row[name]}" for name in differ) for row in rows]
    return names if differ else ["one", "one"]


def _named(record: Record, treatment: str, baseline: str) -> Record:
    return {**record, "load": {**record["load"], "treatment": treatment, "baseline": baseline}}


def _cell_row(cell: Cell) -> dict[str, object]:
    """A cell of the summary as a flat row: `baseline_ms` is the median, `improvement` the point estimate."""
    plain = {name: value for name, value in cell.items() if not isinstance(value, dict)}
    medians = {name: cell[name]["median"] for name in ("baseline_ms", "treatment_ms")}
    found = cell["improvement"]
    change = {"improvement": found["point"], "low": found["low"], "high": found["high"]}
    return {**plain, **medians, **change, "proved": cell["proof"]["ok"]}


def _chart(spec: dict[str, object]) -> alt.TopLevelMixin:
    return alt.Chart.from_dict(spec)

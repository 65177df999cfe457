"""An experiment on small pages: long enough for a test to interrupt it, and readers of its results folder."""

import shutil
import subprocess

from program import Ended, Program
from small_pages import chain, fan

from firstflight.experiment.folder import stored_plan
from firstflight.experiment.schedule import Schedule
from firstflight.results import Journal, LoadRecord
from firstflight.results.records import plt_ms

PAGES = (chain(3), fan(2))
RTT_MS = 20
# At this rate a load takes half a second. firstflight skips the calibration of rates that are so low.
PATH = ("--rtt", f"{RTT_MS}", "--down", "90kbit", "--up", "90kbit")


class Experiment:
    """Runs of `firstflight` in one results folder.

    Args:
        program: The program and the folder it works in.
        repeats: Loads of each of the two pages in each of the two modes.
        jobs: Loads at a time.
        client: What loads the pages.
        out: Name of the results folder.
    """

    def __init__(
        self, program: Program, repeats: int, *, jobs: int = 4, client: str = "loader", out: str = "out"
    ) -> None:
        self._program = program
        self._flags = ("--repeats", str(repeats), "--jobs", str(jobs), "--client", client)
        self._out = out
        self.loads = 2 * len(PAGES) * repeats
        self.folder = program.folder / out
        for page in PAGES:
            (program.folder / f"{page.page.name}.json").write_text(page.page.to_json())

    def start(self, *flags: str) -> subprocess.Popen[str]:
        """Starts the experiment, or resumes it if its results folder has a plan."""
        if (self.folder / "plan.toml").exists():
            return self._program.start("run", "--resume", "--out", self._out, *flags)
        pages = [f"{page.page.name}.json" for page in PAGES]
        return self._program.start("run", *pages, *PATH, *self._flags, "--out", self._out, *flags)

    def begin_like(self, other: "Experiment") -> None:
        """Prepares the results folder with the plan and the calibration of `other`, and without loads.

        A calibration measures the delay that the relay adds, with an error of about 0.05 ms. All loads of a
        folder share that error. Two folders with separate calibrations would therefore differ by it in every
        load.
        """
        self.folder.mkdir()
        for name in ("plan.toml", "environment.json"):
            shutil.copy(other.folder / name, self.folder / name)

    def resume(self) -> Ended:
        """Resumes the experiment and waits until it is complete."""
        return self._program("run", "--resume", "--out", self._out)

    def planned(self) -> list[str]:
        """The names of the loads that the plan asks for, sorted."""
        plan = stored_plan(self.folder)
        assert plan is not None
        blocks = Schedule(plan, [page.page.name for page in PAGES])
        return sorted(load.load_id for block in blocks for load in block.loads)

    def made(self) -> list[str]:
        """The names of the loads in the journal, sorted."""
        return sorted(record["load"]["load_id"] for record in self.records())

    def records(self) -> list[LoadRecord]:
        """The loads in the journal."""
        return Journal(self.folder / "journal.jsonl").records()

    def instrument_failures(self) -> list[LoadRecord]:
        """How often a laboratory gave no result, according to the journal."""
        journal = Journal(self.folder / "journal.jsonl")
        assert journal.records()
        return journal.instrument_failures

    def plts_ms(self) -> dict[tuple[str, str], list[float]]:
        """The page load times of the loads that ended ok, by page and mode."""
        found: dict[tuple[str, str], list[float]] = {}
        for record in self.records():
            load = record["load"]
            if load["status"] == "ok":
                found.setdefault((load["page"], load["mode"]), []).append(plt_ms(record))
        return found

    def journal_bytes(self) -> int:
        """How long the journal is so far."""
        journal = self.folder / "journal.jsonl"
        return journal.stat().st_size if journal.exists() else 0

    def results(self) -> int:
        """How many loads have a result so far; a load that was made again counts once."""
        return len(self.made()) if (self.folder / "journal.jsonl").exists() else 0

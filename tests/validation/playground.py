"""Tests the playground in Chromium and compares its numbers with those of the command line.

    make playground
    python tests/validation/playground.py target/playground/playground.html [--settings 200] [--changes 100]
        [--shots FOLDER]

It prints a Markdown table of the file's size, its load time and the time of a change. The table also says for
how many random settings the page's records are right. They are compared, byte by byte, with the journal of
the `firstflight run` that the page shows, after one JSON writer has written both.

The exit code is 1 if a record differs, the page reports an error or needs the network, or it scrolls sideways
on a narrow screen.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import random
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, ViewportSize, sync_playwright

from firstflight.cli.app import main as firstflight

ROOT = Path(__file__).parents[2]
NARROW: ViewportSize = {"width": 360, "height": 740}
WIDE: ViewportSize = {"width": 1280, "height": 900}
MOST_MS = 100.0
"""The longest that a change may take, at the 95th percentile."""

RATES = ("128kbit", "256kbit", "512kbit", "1mbit", "2mbit", "4mbit", "16mbit", "100mbit", "unlimited")
SETTINGS: dict[str, Sequence[Any]] = {
    "page": ("one", "amazon", "nytimes", "wsj", "wikipedia"),
    "rtt": range(1, 601),
    "down": RATES,
    "up": RATES,
    "loss": ("0", "0", "0.001", "0.005", "0.01", "0.02", "0.05"),
    "queue": ("10p", "20p", "50p", "100p", "1000p", "unlimited", "codel", "pie"),
    "seed": range(1000),
    "scheme": ("http", "https"),
    "http": ("1.1", "2"),
    "baseline": ("tcp", "tfo"),
    "treatment": (
        "tfo",
        "tls12",
        "resumption",
        "early-data",
        "tfo+early-data",
        "quic",
        "quic-0rtt",
    ),
}
TLS = SETTINGS["treatment"][1:]
TIME_OF_CHANGE = """async ([name, value]) => {
  const field = document.getElementById(`set-${name}`);
  const drawn = () => Number(document.documentElement.dataset.drawn);
  const before = drawn();
  await new Promise(requestAnimationFrame);
  const start = performance.now();
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  while (drawn() === before) await new Promise((resolve) => setTimeout(resolve));
  const drawnMs = performance.now() - start;
  document.body.getBoundingClientRect();
  await new Promise(requestAnimationFrame);
  return [drawnMs, performance.now() - start];
}"""


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Validate the playground in Chromium.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--settings", type=int, default=200)
    parser.add_argument("--changes", type=int, default=100)
    parser.add_argument("--shots", type=Path, help="folder for screenshots")
    options = parser.parse_args()
    options.file = options.file.resolve()
    os.chdir(ROOT)  # The commands name a file of the repository.
    wrong: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        context = browser.new_context(viewport=WIDE, offline=True)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(f"error on the page: {error}"))
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        address = options.file.resolve().as_uri()
        say("what", "measured")
        say("---", "---")
        say("Chromium", browser.version)
        say("size", f"{options.file.stat().st_size / 1e6:.2f} MB")
        loaded = [load_ms(page, address) for _ in range(5)]
        say("from navigation to the first drawing", f"{spread(loaded)}, n = 5")
        changes = list(change_ms(page, options.changes))
        say("a change, simulated and drawn", f"{spread([one for one, _ in changes])}, n = {len(changes)}")
        say(
            "a change, until the frame after it",
            f"{spread([frame for _, frame in changes])}, n = {len(changes)}",
        )
        if percentile([both[0] for both in changes], 95) > MOST_MS:
            wrong.append(f"a change takes more than {MOST_MS:g} ms")
        wrong += by_keyboard(page, address)
        wrong += narrow(page, address)
        if options.shots:
            take(page, address, options.shots)
        began = time.monotonic()
        settings = [drawn(random.Random(number)) for number in range(options.settings)]
        different = [one for one in settings if not is_same(page, one)]
        wrong += [f"another record: {one}" for one in different]
        same = f"{len(settings) - len(different)} of {len(settings)}"
        say("settings with the records of the command line", f"{same} ({time.monotonic() - began:.0f} s)")
        wrong += [f"the page asks for {url[:80]}" for url in asked if not url.startswith(("file:", "data:"))]
        browser.close()
    sys.stderr.writelines(f"{line}\n" for line in wrong)
    return 1 if wrong else 0


def say(*cells: object) -> None:
    """Prints a row of the table."""
    sys.stdout.write(f"| {' | '.join(map(str, cells))} |\n")
    sys.stdout.flush()


def spread(times: Sequence[float]) -> str:
    """Median, 95th percentile and maximum, ms."""
    return f"median {statistics.median(times):.0f}, p95 {percentile(times, 95):.0f}, most {max(times):.0f} ms"


def percentile(numbers: Sequence[float], percent: float) -> float:
    """The smallest number that at least `percent` % of the numbers do not exceed."""
    return sorted(numbers)[max(0, math.ceil(percent / 100 * len(numbers)) - 1)]


def load_ms(page: Page, address: str) -> float:
    """The time from navigation to the first drawing, ms."""
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_function("document.documentElement.dataset.drawn")
    return float(page.evaluate("performance.now()"))


def drawn(rng: random.Random) -> dict[str, Any]:
    """Random settings that `firstflight run` accepts."""
    settings = {key: rng.choice(values) for key, values in SETTINGS.items()}
    if settings["treatment"] in TLS:
        return {**settings, "scheme": "https"}
    return {**settings, "http": "1.1"} if settings["scheme"] == "http" else settings


def change_ms(page: Page, changes: int) -> Iterator[tuple[float, float]]:
    """For each random change of one control: ms until everything is drawn, and until the next frame."""
    rng = random.Random(1)
    names = [name for name in SETTINGS if name not in ("http", "baseline")]
    for _ in range(changes):
        name = rng.choice(names)
        field = page.locator(f"#set-{name}")
        if field.get_attribute("type"):
            least, most = (int(field.get_attribute(end) or 0) for end in ("min", "max"))
            value = str(rng.randint(least, min(most, 10_000)))
        else:
            value = rng.choice([str(one) for one in SETTINGS[name]])
        whole, frame = page.evaluate(TIME_OF_CHANGE, [name, value])
        yield whole, frame


def is_same(page: Page, settings: dict[str, Any]) -> bool:
    """Whether the page's records of both treatments equal those of the command that the page shows."""
    texts = page.evaluate("(settings) => globalThis.playground.records(settings)", settings)
    pair = f"{settings['baseline']},{settings['treatment']}"
    keys = "&".join(f"{key}={settings[key]}" for key in settings if key not in ("baseline", "treatment"))
    before = page.evaluate("document.documentElement.dataset.drawn")
    page.evaluate("(hash) => { location.hash = hash; }", f"#{keys}&mode={pair}")
    page.wait_for_function("(before) => document.documentElement.dataset.drawn !== before", arg=before)
    records = made_by(page.locator("#command").inner_text())
    modes = (settings["baseline"], settings["treatment"])
    return all(
        parts(json.loads(text)) == kept(records[mode]) for text, mode in zip(texts, modes, strict=True)
    )


def made_by(command: str) -> dict[str, Any]:
    """The records in a command's journal, by mode.

    The command runs in this process, since starting Python is slow.
    """
    _, *arguments = shlex.split(command)
    with tempfile.TemporaryDirectory() as folder:
        with redirect_stdout(io.StringIO()):
            code = firstflight([*arguments, "--out", folder, "--quiet", "--json"])
        if code == 2:  # 1: a load failed, which is a record too.
            raise ValueError(f"exit code {code}: {command}")
        lines = (Path(folder) / "journal.jsonl").read_text().splitlines()
    return {record["load"]["mode"]: record for record in map(json.loads, lines)}


PARTS = ("requests", "connections", "proof", "relay")
COUNTS = {
    **{name: name for name in ("plt_ms", "first_byte_ms", "status", "error", "failed_requests")},
    **{name: name for name in ("unmatched_requests", "tfo_offered", "tfo_accepted", "bytes_down")},
    **{"bytes_up": "bytes_up", "retransmits": "retransmits"},
    **{"request_count": "requests", "connection_count": "connections"},
}
"""Keys of the simulator's answer, and the columns of `loads` with the same values."""


def parts(answer: dict[str, Any]) -> bytes:
    """The compared parts of the simulator's answer, as bytes."""
    if extra := answer.keys() - {*PARTS, *COUNTS}:
        raise ValueError(f"the answer has keys that are not compared: {extra}")
    return json.dumps([[answer[key] for key in PARTS], [answer[key] for key in COUNTS]]).encode()


def kept(record: dict[str, Any]) -> bytes:
    """The same parts of a line of the journal."""
    return json.dumps(
        [[record[key] for key in PARTS], [record["load"][key] for key in COUNTS.values()]]
    ).encode()


def by_keyboard(page: Page, address: str) -> Iterator[str]:
    """Problems with use by keyboard alone: controls that Tab does not reach, or a tour that fails."""
    load_ms(page, address)
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate("document.activeElement.id || document.activeElement.textContent.slice(0, 8)")
        )
    if missing := {f"set-{name}" for name in SETTINGS} - reached:
        yield f"not reached by Tab: {missing}"
    page.locator("#set-rtt").focus()
    before = page.locator("#headline").inner_text()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("(before) => document.getElementById('headline').innerText !== before", arg=before)
    if "120 ms" not in page.locator("#controls").inner_text():
        yield "arrow keys do not move the RTT"
    page.locator("#tour button").nth(5).focus()
    page.keyboard.press("Enter")
    page.wait_for_function("document.getElementById('paper').dataset.complete", timeout=60_000)
    if page.locator("#paper tbody tr").count() != 12:
        yield "the paper's table has not twelve rows"


def narrow(page: Page, address: str) -> Iterator[str]:
    """The steps of the tour that do not fit a screen of 360 px."""
    page.set_viewport_size(NARROW)
    for step in range(1, 7):
        load_ms(page, f"{address}#step={step}")
        page.wait_for_timeout(200)
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > NARROW["width"]:
            yield f"step {step} is {width} px wide on a screen of {NARROW['width']}"
    page.set_viewport_size(WIDE)


def take(page: Page, address: str, folder: Path) -> None:
    """Takes screenshots, narrow and wide, light and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, size in (("wide", WIDE), ("narrow", NARROW)):
        page.set_viewport_size(size)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            for step in (1, 4, 6):
                load_ms(page, f"{address}#step={step}")
                page.wait_for_timeout(1500)
                page.screenshot(path=folder / f"{name}-{scheme}-{step}.png", full_page=True)
    page.set_viewport_size(WIDE)
    page.emulate_media(color_scheme="light")
    load_ms(page, address)


if __name__ == "__main__":
    sys.exit(main())

"""Chromium's own sandbox: on for every user; without one the run is refused; only a flag turns it off."""

import json

import pytest
from program import Ended, Program
from small_pages import document, load, page
from synth_site import program as installed

from firstflight.engines.clients.chromium.browser import find_browser
from firstflight.engines.clients.chromium.client import Chromium
from firstflight.engines.emulate import Emulator

ONLY_ROOT = ("unshare", "--user", "--map-root-user")
"""Runs a command as in a container whose only user is root."""
NO_NESTING = (*ONLY_ROOT, "sh", "-c", 'echo 1 > /proc/sys/user/max_user_namespaces && exec "$@"', "sh")
"""The same, where a laboratory can be built but no user namespace inside it, so Chromium can have no sandbox.
"""


def run(program: Program, *flags: str, wrap: tuple[str, ...] = ()) -> Ended:
    """Loads a small page once in Chromium, at a rate so low that firstflight skips its calibration."""
    (program.folder / "one.json").write_text(page("one", document()).page.to_json())
    path = ("--rtt", "20", "--down", "90kbit", "--up", "90kbit")
    plan = ("--client", "chromium", "--mode", "tcp", "--repeats", "1", "--out", "out")
    return program("run", "one.json", *path, *plan, *flags, wrap=wrap)


def sandboxed(program: Program) -> bool:
    """Whether the journal says that the browser of the successful load had its sandbox."""
    lines = (program.folder / "out" / "journal.jsonl").read_text().splitlines()
    records = map(json.loads, lines)
    [on] = {row["browser"]["sandboxed"] for row in records if row["load"]["status"] == "ok"}
    return bool(on)


@pytest.mark.usefixtures("emulator")
def test_the_sandbox_is_on_whoever_runs_the_browser() -> None:
    browser = Chromium(find_browser(installed("chromium")))
    record = load(Emulator(clients={"chromium": browser}), page("one", document()), "tcp", client="chromium")
    assert record["load"]["status"] == "ok", record["load"]
    assert record["browser"]["sandboxed"] is True


def test_it_is_on_in_a_container_whose_only_user_is_root(program: Program) -> None:
    ended = run(program, wrap=ONLY_ROOT)
    assert sandboxed(program) is True, ended.err


def test_where_it_cannot_be_had_the_run_is_refused_before_it_starts(program: Program) -> None:
    ended = run(program, wrap=NO_NESTING)
    assert ended.code == 2, ended.err
    assert "error: client: Chromium cannot have its sandbox here" in ended.err
    assert "--no-browser-sandbox" in ended.err
    assert not (program.folder / "out" / "journal.jsonl").exists()


def test_giving_it_up_is_said_on_the_screen_and_in_the_results(program: Program) -> None:
    ended = run(program, "--no-browser-sandbox")
    assert "warning: Chromium runs without its sandbox" in ended.err, ended.err
    assert sandboxed(program) is False
    environment = json.loads((program.folder / "out" / "environment.json").read_text())
    assert environment["clients"]["chromium"].endswith("without its sandbox")


def test_a_plan_cannot_give_it_up(program: Program) -> None:
    for key in ("browser_sandbox", "no_browser_sandbox"):
        (program.folder / "plan.toml").write_text(f'client = "chromium"\n{key} = false\n')
        ended = program("run", "--plan", "plan.toml")
        assert ended.code == 2
        assert f"{key}: unknown key" in ended.err


def test_a_plan_cannot_name_the_browser(program: Program) -> None:
    script = program.folder / "x"
    script.write_text("#!/bin/sh\ntouch ran\necho Chromium 1.2.3\n")
    script.chmod(0o755)
    (program.folder / "plan.toml").write_text('client = "chromium"\nbrowser = "./x"\n')
    ended = program("run", "--plan", "plan.toml")
    assert ended.code == 2
    assert "plan.toml, line 2, browser: a plan cannot name a program to run" in ended.err
    assert "--browser PATH" in ended.err
    assert not (program.folder / "ran").exists()

"""Chromium outside a laboratory, recording or printing: it has its sandbox and none of root's rights."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from program import Process, Program, own_namespaces, until
from synth_site import program as installed
from test_browser_sandbox import NO_NESTING

from firstflight.engines.clients.chromium.browser import find_browser
from firstflight.report.write import write_pdf

TRY = """
import sys
from pathlib import Path
from firstflight.engines.clients.chromium.browser import become_ordinary
inside, outside, change = sys.argv[1:]
assert change == "no" or become_ordinary([Path(inside).parent])
Path(inside).touch()
Path(outside).touch()
"""


def status(process: Process, field: str) -> str:
    """A field of proc_pid_status(5)."""
    lines = (Path("/proc") / f"{process.pid}" / "status").read_text().splitlines()
    [value] = [line.partition(":")[2].strip() for line in lines if line.startswith(f"{field}:")]
    return value


def command(process: Process) -> list[str]:
    return (Path("/proc") / f"{process.pid}" / "cmdline").read_text().replace("\0", " ").split()


def test_the_browser_that_records_has_its_sandbox_and_no_capabilities(program: Program) -> None:
    installed("chromium")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        process = program.start("record", f"http://127.0.0.1:{server.getsockname()[1]}/", "-o", "x.wacz")
        try:
            with server.accept()[0]:
                renderers = [found for found in program.descendants() if "--type=renderer" in command(found)]
                assert renderers
                for renderer in renderers:
                    assert "--no-sandbox" not in command(renderer)
                    assert int(status(renderer, "CapEff"), 16) == 0
                    assert status(renderer, "Seccomp") == "2"
                    assert os.readlink(f"/proc/{renderer.pid}/ns/user") not in own_namespaces()
        finally:
            os.killpg(process.pid, signal.SIGINT)
            process.communicate(timeout=60)
    assert until(lambda: not program.processes())


def test_a_report_is_printed_with_the_sandbox(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("<p>hello")
    file = write_pdf(tmp_path, find_browser(installed("chromium")), sandbox=True)
    assert file.read_bytes().startswith(b"%PDF")


def test_what_root_starts_can_write_nowhere_else(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root has rights to give up")
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    words = [sys.executable, "-c", TRY, f"{inside}/file", f"{outside}"]
    refused = subprocess.run([*words, "yes"], capture_output=True, text=True, check=False)
    assert "Read-only file system" in refused.stderr, refused.stderr
    assert (inside / "file").exists()
    assert not outside.exists()
    subprocess.run([*words, "no"], check=True)
    assert outside.exists()


def test_where_it_cannot_be_had_nothing_is_recorded(program: Program) -> None:
    installed("chromium")
    record = ("record", "http://127.0.0.1:9/", "-o", "x.wacz")
    refused = program(*record, wrap=NO_NESTING)
    assert refused.code == 2, refused.err
    assert "error: browser: Chromium cannot have its sandbox here" in refused.err
    given_up = program(*record, "--no-browser-sandbox", "--retries", "0", wrap=NO_NESTING)
    assert "warning: Chromium runs without its sandbox" in given_up.err
    assert "ERR_" in given_up.err, given_up.err


def test_where_it_cannot_be_had_nothing_is_printed(program: Program) -> None:
    installed("chromium")
    run = program("run", "wikipedia", "--engine", "simulate", "--rtt", "20", "--out", "out")
    assert run.code == 0, run.err
    pdf = program.folder / "out" / "report.pdf"
    refused = program("report", "out", "--pdf", wrap=NO_NESTING)
    assert refused.code == 2, refused.err
    assert "error: browser: Chromium cannot have its sandbox here" in refused.err
    assert not pdf.exists()
    given_up = program("report", "out", "--pdf", "--no-browser-sandbox", wrap=NO_NESTING)
    assert "warning: Chromium runs without its sandbox" in given_up.err
    assert pdf.exists(), given_up.err

"""`firstflight doctor` where a laboratory can be built."""

import json
import os
import sys
from pathlib import Path

import pytest
from program import Program, until


@pytest.mark.ordinary_user
def test_doctor_finds_everything_that_the_laboratory_needs(program: Program) -> None:
    ended = program("doctor", "--json")
    document = json.loads(ended.out)
    assert (ended.code, document["ok"]) == (0, True), document
    checks = {check["name"]: check for check in document["checks"]}
    assert all(check["ok"] for check in checks.values() if check["needed"])
    assert {"Linux kernel", "namespaces", "TUN device", "calibration", "client loader"} <= checks.keys()
    assert until(lambda: program.processes() == [])


PLANT = "import os, socket, sys; socket.sethostname('zebedee-box'); os.execvp(sys.argv[1], sys.argv[1:])"
PLANTED = (
    *("unshare", "--user", "--map-root-user", "--uts", sys.executable, "-c", PLANT),
    *("env", "--unset=XDG_STATE_HOME", "USER=zebedee", "LOGNAME=zebedee", "ZEBEDEE_TOKEN=zebedee-secret"),
)
"""Runs a program with a user name, a host name and an environment variable that no report may contain."""


@pytest.mark.ordinary_user
def test_doctor_shows_people_a_table_and_reports_nothing_personal(program: Program) -> None:
    refused = program("run", program.folder / "zebedee/a", wrap=PLANTED)
    assert "/zebedee/a: no such file" in refused.err
    ended = program("doctor", "--report", "report.json", wrap=PLANTED)
    assert "namespaces" in ended.out
    text = (program.folder / "report.json").read_text()
    report = json.loads(text)
    assert report["last_error"]["message"] == "…/a: no such file or directory"
    assert report["kernel"] == os.uname().release
    assert report["calibration"]["rtt_ms"]["received"] > 0
    assert {check["name"] for check in report["checks"]} > {"Linux kernel", "namespaces", "calibration"}
    assert {"numpy", "polars"} <= report["packages"].keys()
    personal = ("zebedee", "ZEBEDEE", os.uname().nodename, str(program.folder.parent), str(Path.home()) + "/")
    assert [name for name in personal if name in text] == []


@pytest.mark.parametrize("file", ["gone/report.json", ".", "/dev/stdout"])
def test_a_report_that_cannot_be_written_is_refused_before_anything_is_measured(
    program: Program, file: str
) -> None:
    ended = program("doctor", "--report", file)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: report: {file} cannot be written\nhint: ")


WITHOUT_NAMESPACES = (
    *("unshare", "--user", "--map-root-user"),
    *("sh", "-c", 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"', "sh"),
)
"""Runs a program that may not create user namespaces, as in a container with a strict seccomp profile."""


def test_where_namespaces_are_denied_doctor_names_the_fix_for_that_alone(program: Program) -> None:
    ended = program("doctor", wrap=WITHOUT_NAMESPACES)
    assert ended.code == 1
    assert "hint: `sudo sysctl user.max_user_namespaces=10000`" in ended.err
    assert "client isolation" in ended.out
    assert "systempaths" not in ended.err

"""`firstflight doctor` where a laboratory can be built."""

import json

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


def test_doctor_shows_people_a_table(program: Program) -> None:
    ended = program("doctor")
    assert ended.code == 0
    assert "namespaces" in ended.out

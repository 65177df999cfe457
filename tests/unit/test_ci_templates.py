"""Runs the scripts of the CI templates as a CI runner does: line by line, with its variables."""

import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from firstflight.model.page import Initiator, Resource
from firstflight.pages import load_page

ROOT = Path(__file__).parents[2]
CI = ROOT / "packaging" / "ci"
BASE = ROOT / "tests" / "data" / "pages" / "2012_fr.wikipedia.org_chrome.json"


@pytest.fixture
def head(tmp_path: Path) -> Path:
    page = load_page(str(BASE))[0].page
    new = Resource("https://tags.example/tag.js", "script", "text/javascript", 300, 300, 600)
    longest = len(page.resources) - 1
    file = tmp_path / "head.json"
    late = replace(new, initiator=Initiator(longest, "script", delay_ms=5_000))
    file.write_text(replace(page, resources=(*page.resources, late)).to_json())
    return file


def ran(script: str, folder: Path, **variables: str) -> int:
    program = Path(sys.executable).with_name("firstflight")
    for place in (folder / "firstflight" / "bin", folder / ".firstflight" / "bin"):
        place.mkdir(parents=True, exist_ok=True)
        (place / "firstflight").symlink_to(program)
    variables = {"PATH": os.environ["PATH"], "RUNNER_TEMP": str(folder), **variables}
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script], cwd=folder, env=variables, check=False
    ).returncode


def test_the_script_of_the_github_action_gates_and_leaves_a_comment(tmp_path: Path, head: Path) -> None:
    text = (CI / "github" / "action.yml").read_text()
    script = textwrap.dedent(text.rpartition("run: |\n")[2])
    given = {"NETWORK": "cable", "BUDGET": "", "OPTIONS": "--tolerance 20"}
    given |= {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    assert ran(script, tmp_path, BASE=f"{BASE}\n", HEAD=f"{head}\n", **given) == 1
    assert (tmp_path / "output").read_text() == "markdown=firstflight/gate.md\n"
    assert "`tags.example/tag.js`" in (tmp_path / "firstflight" / "gate.md").read_text()
    assert (tmp_path / "summary").read_text() == (tmp_path / "firstflight" / "gate.md").read_text()


def test_the_script_of_the_gitlab_template_gates_and_leaves_junit(tmp_path: Path, head: Path) -> None:
    text = (CI / "gitlab" / "firstflight-gate.yml").read_text()
    lines = text.partition("  script:\n")[2].partition("  artifacts:")[0].splitlines()
    script = "\n".join(line.strip().removeprefix("- ") for line in lines)
    given = {"FIRSTFLIGHT_NETWORK": "cable", "FIRSTFLIGHT_BUDGET": ""}
    assert ran(script, tmp_path, FIRSTFLIGHT_BASE=str(BASE), FIRSTFLIGHT_HEAD=str(BASE), **given) == 0
    suite = ElementTree.parse(tmp_path / "firstflight" / "gate.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")

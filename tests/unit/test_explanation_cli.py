import json
from pathlib import Path

import pytest
from handmade_load import results

from firstflight.cli.app import main


def test_report_explain_prints_the_blocks_and_json_carries_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(results(tmp_path / "r"))
    assert main(["report", folder, "--explain", "--quiet"]) == 0
    assert "TFO could save 200 ms at most" in capsys.readouterr().out
    assert main(["report", folder, "--explain", "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["explanations"][0]["could_save_ms"] == pytest.approx(200)
    assert main(["report", folder, "--json", "--quiet"]) == 0
    assert "explanations" not in json.loads(capsys.readouterr().out)

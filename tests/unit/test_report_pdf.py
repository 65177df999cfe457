from pathlib import Path

import handmade_load
import pytest

from firstflight.cli import main
from firstflight.errors import UsageError
from firstflight.report.write import write_pdf


def test_without_a_browser_nothing_is_made_and_the_mend_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = handmade_load.results(tmp_path)
    before = sorted(folder.iterdir())
    assert main(["report", str(folder), "--pdf", "--browser", "no-such-browser"]) == 2
    said = capsys.readouterr().err
    assert "no-such-browser is not a program" in said
    assert "hint:" in said
    assert sorted(folder.iterdir()) == before


def test_a_program_that_is_no_browser_cannot_print_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("<p>hello")
    with pytest.raises(UsageError, match="/bin/false cannot print it") as caught:
        write_pdf(tmp_path, Path("/bin/false"), sandbox=True)
    assert "--browser PATH" in caught.value.hint
    assert not (tmp_path / "report.pdf").exists()

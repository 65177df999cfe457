"""The word check that `make lint` runs finds the words of its list, and only in prose."""

from pathlib import Path

import pytest
from prose import ROOT, check, main, read_words, written

WORDS = read_words()


def found(file: Path, text: str) -> list[tuple[int, str]]:
    file.write_text(text)
    return [(line, what.partition(":")[0]) for line, what in check(file, WORDS)]


def test_a_word_of_the_list_fails_and_is_named_with_its_line_and_a_replacement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Heading\n\nNobody waits\nbeside it.\n")
    assert main([str(page)]) == 1
    nobody, beside = capsys.readouterr().out.splitlines()
    assert nobody.startswith(f"{page}:3: Nobody: write instead: ")
    assert beside.startswith(f"{page}:4: beside: write instead: next to")


def test_prose_without_such_words_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("besides, no client is next to a server.\n")
    assert main([str(page)]) == 0
    assert capsys.readouterr().out == ""


def test_code_and_the_targets_of_links_are_no_prose(tmp_path: Path) -> None:
    text = "`beside` [next](beside.md)\n```\nbeside\n```\n<!-- beside -->\nbeside\n"
    assert found(tmp_path / "page.md", text) == [(6, "beside")]


def test_a_phrase_is_found_across_lines(tmp_path: Path) -> None:
    assert found(tmp_path / "page.md", "flags stand\nover the plan\n") == [(1, "stand over")]


def test_in_python_strings_are_prose_and_names_comments_and_docstrings_are_not(tmp_path: Path) -> None:
    text = '''"""Beside it."""
beside = f"{0} is beside"  # beside
def command():
    """Beside it."""
'''
    assert found(tmp_path / "module.py", text) == [(2, "beside")]
    (tmp_path / "cli").mkdir()
    assert found(tmp_path / "cli/module.py", text) == [(2, "beside"), (4, "Beside")]


def test_in_templates_text_is_prose_and_markup_is_not(tmp_path: Path) -> None:
    text = "<p class='beside'>{{ beside }}\n<script>beside</script>\nis beside</p>"
    assert found(tmp_path / "page.html.j2", text) == [(3, "beside")]


def test_documents_messages_and_templates_are_checked() -> None:
    files = {str(file.relative_to(ROOT)) for file in written()}
    documents = {"README.md", "CHANGELOG.md", "docs/faq.md", "studies/paper/README.md", "plans/paper.toml"}
    assert documents <= files
    assert {"plan.py", "report.html.j2"} <= {Path(file).name for file in files}

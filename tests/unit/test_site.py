from pathlib import Path

import pytest
import site_links
import site_source
from documents import ROOT


def built(site: Path, **pages: str) -> Path:
    for name, text in pages.items():
        (site / f"{name}.html").write_text(text)
    return site


def checked(site: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["site_links.py", str(site)])
    return site_links.main()


def test_a_site_whose_links_lead_somewhere_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = built(tmp_path, index='<a href="other.html#there">', other='<h2 id="there"><a href=".">')
    assert checked(site, monkeypatch) == 0


@pytest.mark.parametrize("link", ["gone.html", "other.html#gone", "#gone", "figure.svg"])
def test_a_dead_link_of_the_site_is_named(
    link: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site = built(tmp_path, index=f'<a href="{link}">', other="<p>")
    assert checked(site, monkeypatch) == 1
    assert f"index.html: {link} leads nowhere" in capsys.readouterr().err


def test_the_source_of_the_site_has_every_page_and_changes_links_to_files_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["site_source.py", str(tmp_path / "source")])
    site_source.main()
    source = tmp_path / "source"
    assert {page.name for page in (ROOT / "docs").glob("*.md")} <= {page.name for page in source.glob("*.md")}
    assert "](repository/examples/chain.json)" in (source / "tutorial.md").read_text()
    assert "](../architecture.md)" in (source / "repository/CONTRIBUTING.md").read_text()
    assert (source / "repository/examples/chain.json").is_file()

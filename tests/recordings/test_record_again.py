"""Records real pages from their replay, and records those recordings: both have the same content."""

from pathlib import Path

import pytest
from recorded import again, record

from firstflight.pages import load_page

REAL = (
    "corpus/pages/tp5n/w3.org#http://www.w3.org/standards/webdesign/htmlcss.html",
    "corpus/warc/2018_books-toscrape.warc.gz",
)


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize("recorded", REAL)
def test_a_real_page_is_recorded_twice_alike(recorded: str, shared_data: Path, tmp_path: Path) -> None:
    pages = load_page(f"{shared_data}/{recorded}")
    start = [pages[0].page.resources[0].url.replace("https:", "http:")]
    first = record(pages, start, tmp_path / "x.wacz")
    second = again(first, start)
    assert len(first.gist()) > 10
    assert second.gist() == first.gist()

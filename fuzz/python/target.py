"""What every target shares: a folder for its files, the one way to refuse, the loop.

A target is a function of bytes. It raises when an invariant does not hold; libFuzzer watches time and memory.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import atheris

FOLDER = Path(tempfile.mkdtemp(prefix="firstflight-fuzz-", dir="/dev/shm"))
os.environ["XDG_CACHE_HOME"] = str(FOLDER / "cache")

with atheris.instrument_imports(include=["firstflight", "tinycss2", "warcio", "html.parser", "_markupbase"]):
    from firstflight.errors import UsageError
    from firstflight.pages import LoadedPage, Page, load_page, under

Result = TypeVar("Result")


def refused_or(call: Callable[[], Result]) -> Result | None:
    """What `call` returns; None if it refuses, which it must do in words."""
    try:
        return call()
    except UsageError as error:
        assert error.message
        assert error.hint
        assert (error.message + error.hint).isprintable(), "one line each, and nothing a terminal obeys"
        return None


def opened(spec: Path | str) -> list[LoadedPage]:
    """The pages in `spec`, if it is not refused: each is whole, and survives being written and changed."""
    pages = refused_or(lambda: load_page(str(spec))) or []
    for loaded in pages:
        check_page(loaded.page)
        check_bodies(loaded)
        check_bodies(under("http", loaded))
    return pages


def check_page(page: Page) -> None:
    """A page is the same after it was written and read."""
    assert Page.from_json(page.to_json()) == page
    page.describe()


def check_bodies(loaded: LoadedPage) -> None:
    """Every body is a file of the size that the page says; no header field ends its line."""
    for index, file in loaded.bodies.items():
        assert file.stat().st_size == loaded.page.resources[index].body_bytes
    for index, fields in loaded.headers.items():
        assert index < len(loaded.page.resources)
        assert not any(c in name + value for name, value in fields for c in "\r\n\0")


def main(test: Callable[[bytes], None]) -> None:
    """Runs libFuzzer with the arguments of the command line."""
    atheris.Setup(sys.argv, test)
    atheris.Fuzz()

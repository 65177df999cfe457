"""What the fuzz targets found (`fuzz/`), with the smallest input that shows it."""

import pytest

from firstflight.errors import FirstflightError


@pytest.mark.parametrize(
    ("quoted", "shown"),
    [("a\nb", "a\\nb"), ("\x1b[31m", "\\x1b[31m"), ("\ud800", "\\ud800"), ("\u202eé", "\\u202eé")],
)
def test_an_error_is_one_line_whatever_it_quotes(quoted: str, shown: str) -> None:
    error = FirstflightError(f"bad: {quoted}", f"mend {quoted}")
    assert (error.message, error.hint, str(error)) == (f"bad: {shown}", f"mend {shown}", f"bad: {shown}")

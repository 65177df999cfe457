"""Fixtures of the tests on real recordings.

These are not in the repository; without them the tests are skipped.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures import emulator

__all__ = ["emulator"]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real recordings, which lies next to the repository and is not part of it."""
    folder = Path(__file__).resolve().parents[3] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the recordings are not here: ../shared/data")
    return folder


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Replaces the user's cache by an empty folder, which a laboratory can read, for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield

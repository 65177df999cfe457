"""Fixtures of the tests on recordings, which are not part of the repository: without them all are skipped."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures import emulator

__all__ = ["emulator"]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real recordings beside the repository; never part of it."""
    folder = Path(__file__).resolve().parents[3] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the recordings are not here: ../shared/data")
    return folder


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The user's cache, for the time of the tests an empty folder, which a laboratory can read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield

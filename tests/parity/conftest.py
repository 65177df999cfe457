"""Fixtures of the parity tests: the real kernel, with which the simulator is compared."""

import os

import pytest

from firstflight.engines.lab import Lab
from firstflight.errors import LabError


@pytest.fixture(scope="session")
def lab() -> Lab:
    """The laboratory. If none can be built, tests fail in CI and are skipped elsewhere."""
    lab = Lab()
    try:
        checks = lab.ask("doctor", timeout_s=60)["checks"]
        missing = [f"{check['name']}: {check['detail']}" for check in checks if not check["ok"]]
    except LabError as error:
        missing = [f"{error.message} ({error.hint})"]
    if missing:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no laboratory here: {'; '.join(missing)}")
    return lab

"""Fixtures of the parity tests: the real kernel to hold the simulator against."""

import os

import pytest

from firstflight.engines.lab import Lab
from firstflight.errors import LabError


@pytest.fixture(scope="session")
def lab() -> Lab:
    """The laboratory. Where none can be built, CI fails and other machines skip."""
    lab = Lab()
    try:
        checks = lab.ask("doctor", timeout_s=60)["checks"]
        missing = [f"{check['name']}: {check['detail']}" for check in checks if not check["ok"]]
    except LabError as error:
        missing = [f"{error.message} ({error.hint})"]
    if missing:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no laboratory here: {'; '.join(missing)}")
    return lab

"""Settings for all tests.

Property tests have no deadline per example, so that a busy machine does not fail them. In CI, Hypothesis
derives its examples from the test alone and tries 40 per test instead of 100. The environment variable
FIRSTFLIGHT_TEST_EXAMPLES sets another number; the nightly run uses more.

Ctrl-C works even when a shell started the tests in the background. Such a shell makes them and their child
processes ignore SIGINT, so this file installs Python's handler again.

Python writes bytecode next to the sources, whatever the environment says. Otherwise each of hundreds of
processes would compile all modules again.

Tests marked `timing` wait while the host of this virtual machine takes its processors away (steal time).
"""

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

STEALS = 0.05
"""Tests of timing wait while the host steals more than this share of one processor's time."""
SAMPLE_S = 0.5

settings.register_profile(
    "firstflight",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
    max_examples=int(os.environ.get("FIRSTFLIGHT_TEST_EXAMPLES", "40" if "CI" in os.environ else "100")),
)
settings.load_profile("firstflight")

signal.signal(signal.SIGINT, signal.default_int_handler)

# The program stores its last error below this folder; the tests must not overwrite the user's.
STATE = tempfile.TemporaryDirectory(prefix="firstflight-state-")
os.environ["XDG_STATE_HOME"] = STATE.name

for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"):
    os.environ.pop(name, None)
sys.dont_write_bytecode = False


class Host:
    """The physical host that runs this virtual machine, seen through its steal time.

    Args:
        patience_s: How long all tests together may wait for the host, s.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._seen = (time.monotonic(), stolen_s())

    def wait(self) -> None:
        """Waits until the host no longer steals processor time; fails the test if its time is used up."""
        while self._share() > STEALS:
            if self._patience_s <= 0:
                pytest.fail("the host of this virtual machine takes its processors away: not measured")
            self._patience_s -= SAMPLE_S
            end = time.monotonic() + SAMPLE_S
            while time.monotonic() < end:
                """A busy loop: the host can steal time only from a machine that uses its processor."""

    def _share(self) -> float:
        """Steal time since the last call, as a share of one processor's time."""
        (then, before), self._seen = self._seen, (time.monotonic(), stolen_s())
        return (self._seen[1] - before) / max(self._seen[0] - then, SAMPLE_S)


HOST = pytest.StashKey[Host]()


def stolen_s() -> float:
    """The time for which processors were ready to run and the host ran others (`steal` in proc_stat(5))."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--host-within",
        type=float,
        default=60.0,
        metavar="S",
        help="how long tests of timing wait",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[HOST] = Host(config.getoption("host_within"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("timing"):
        item.config.stash[HOST].wait()

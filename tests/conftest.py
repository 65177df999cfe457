"""Settings for all tests.

Property tests do not depend on how busy the machine is, nor, in CI, on chance; there they try fewer examples,
and many more every night (FIRSTFLIGHT_TEST_EXAMPLES). Ctrl-C works even when the tests were started in the
background, where a shell has interrupts ignored, children included. Bytecode stays beside the sources
whatever the environment says: else each of hundreds of processes compiles them anew.

Tests of timing wait while the host of this virtual machine takes its processors away (steal time).
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
"""The share of a processor's time above which the host is waited for."""
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

# Where the program keeps its last error.
STATE = tempfile.TemporaryDirectory(prefix="firstflight-state-")
os.environ["XDG_STATE_HOME"] = STATE.name

for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"):
    os.environ.pop(name, None)
sys.dont_write_bytecode = False


class Host:
    """What runs this virtual machine.

    Args:
        patience_s: For how long tests may wait for it, in all.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._seen = (time.monotonic(), stolen_s())

    def wait(self) -> None:
        """Returns once the host leaves this machine its processors; fails the test if that takes too long."""
        while self._share() > STEALS:
            if self._patience_s <= 0:
                pytest.fail("the host of this virtual machine takes its processors away: not measured")
            self._patience_s -= SAMPLE_S
            end = time.monotonic() + SAMPLE_S
            while time.monotonic() < end:
                """Nothing is taken from a machine that asks for nothing."""

    def _share(self) -> float:
        """What the host took since the last look, as a share of the time of one processor."""
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

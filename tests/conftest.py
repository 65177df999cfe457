"""Settings for all tests.

Property tests do not depend on how busy the machine is, nor, in CI, on chance. Ctrl-C works even when the
tests were started in the background, where a shell has interrupts ignored, children included. Bytecode stays
beside the sources whatever the environment says: else each of hundreds of processes compiles them anew.
"""

import os
import signal
import sys

from hypothesis import HealthCheck, settings

settings.register_profile(
    "firstflight", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("firstflight")

signal.signal(signal.SIGINT, signal.default_int_handler)

for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"):
    os.environ.pop(name, None)
sys.dont_write_bytecode = False

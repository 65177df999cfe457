"""Settings for all tests.

Property tests do not depend on how busy the machine is, nor, in CI, on chance. Ctrl-C works even when the
tests were started in the background, where a shell has interrupts ignored, children included.
"""

import os
import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "firstflight", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("firstflight")

signal.signal(signal.SIGINT, signal.default_int_handler)

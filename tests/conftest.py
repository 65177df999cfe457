"""Settings for all tests: property tests do not depend on how busy the machine is, nor, in CI, on chance."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "firstflight", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("firstflight")

"""Settings and fixtures for all tests."""

import signal

from hypothesis import HealthCheck, settings

from tests.examples import examples

# A test run started in the background ignores SIGINT; restore the handler, because tests interrupt programs.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "casstat", deadline=None, max_examples=examples(30), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("casstat")

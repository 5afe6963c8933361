"""Settings and fixtures for all tests."""

import signal

from hypothesis import HealthCheck, settings

from tests.examples import examples

# A test run in the background ignores SIGINT, and one under nohup SIGHUP; tests send these to themselves and programs.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGTERM, signal.SIG_DFL)

settings.register_profile(
    "casstat", deadline=None, max_examples=examples(30), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("casstat")

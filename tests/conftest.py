"""Settings and fixtures for all tests."""

import signal

from hypothesis import HealthCheck, settings

# A test run started in the background ignores SIGINT; restore the handler, because tests interrupt programs.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A small number of examples keeps `make check` below a minute; each run draws different ones.
settings.register_profile("casstat", deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("casstat")

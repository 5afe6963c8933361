"""Settings and fixtures for all tests."""

import signal

from hypothesis import HealthCheck, settings

# A suite started in the background inherits an ignored SIGINT; restore it so that tests can interrupt programs.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A small number of examples keeps `make check` below a minute; each run draws different ones.
settings.register_profile("casstat", deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("casstat")

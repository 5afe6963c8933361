"""Settings and fixtures of all tests."""

import signal

from hypothesis import HealthCheck, settings

# A suite in the background inherits an ignored SIGINT, and would pass it on to the programs that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Few examples per run keep `make check` below a minute; each run draws different ones.
settings.register_profile("casstat", deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("casstat")

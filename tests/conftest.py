"""What all tests stand on."""

import signal

from hypothesis import HealthCheck, settings

# A suite that runs in the background is started with SIGINT ignored, and would hand that on to every program it ends
# by Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Other examples with each run: many runs see more than one long one, and a check is to take less than a minute.
settings.register_profile("casstat", deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("casstat")

"""Hypothesis for a suite that runs beside other work: nothing here judges by the clock."""

from hypothesis import HealthCheck, settings

settings.register_profile("casstat", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("casstat")

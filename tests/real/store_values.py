"""Converts points to VictoriaMetrics' names and precision."""

import pytest

from tests.real.stores import Points


def by_field(points: Points) -> dict[str, dict[int, float]]:
    """Return the values, keyed by VictoriaMetrics' series name and then by time in milliseconds."""
    values: dict[str, dict[int, float]] = {}
    for series, times in points.items():
        metric, labels = series.split(" ", 1)
        for at_ms, fields in times.items():
            for field, value in fields.items():
                values.setdefault(f"{metric}_{field} {labels}", {})[at_ms] = value
    return values


def as_stored(values: dict[int, float]) -> object:
    """Return a `pytest.approx` that allows for rounding: stores receive only twelve significant digits."""
    return pytest.approx(values, rel=1e-11)

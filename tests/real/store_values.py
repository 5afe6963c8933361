"""Points as VictoriaMetrics names and rounds them."""

import pytest

from tests.real.stores import Points


def by_field(points: Points) -> dict[str, dict[int, float]]:
    """Return numbers as VictoriaMetrics calls them."""
    found: dict[str, dict[int, float]] = {}
    for series, times in points.items():
        metric, labels = series.split(" ", 1)
        for at_ms, fields in times.items():
            for field, value in fields.items():
                found.setdefault(f"{metric}_{field} {labels}", {})[at_ms] = value
    return found


def kept(values: dict[int, float]) -> object:
    """Return what stores have of numbers: twelve digits are sent, and VictoriaMetrics keeps as many."""
    return pytest.approx(values, rel=1e-11)

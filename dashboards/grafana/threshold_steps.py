"""Thresholds as colour steps in Grafana.

A step includes its lower bound, whereas an alert fires only beyond the bound. A value has the colour of its step, and
Grafana draws a threshold line in the colour of the step above the line. For an alert on low values, the step above the
line is the healthier one, so threshold lines have separate steps to get the alert's colour.
"""

from dashboards.expression import Gauge
from dashboards.grafana.panel_colours import CRITICAL, GOOD, WARNING
from dashboards.grafana.panel_model import Line
from dashboards.signals.signal import Unit
from dashboards.thresholds import THRESHOLDS

MIN_VALUE = 1e-9


def value_steps(line: Line) -> list[tuple[float | None, str]]:
    """Return the steps that colour values: pairs of lower bound and colour, ascending. The first bound is None."""
    threshold = THRESHOLDS.get(line.signal_name)
    if threshold is None:
        return [(None, GOOD)]
    warning, critical = threshold.warning, threshold.critical
    if threshold.below:
        steps: list[tuple[float | None, str]] = [(None, WARNING if critical is None else CRITICAL)]
        steps += [] if critical is None else [(critical, GOOD if warning is None else WARNING)]
        return steps + ([] if warning is None else [(warning, GOOD)])
    steps = [(None, GOOD)]
    steps += [] if warning is None else [(_first_beyond(line, warning), WARNING)]
    return steps + ([] if critical is None else [(_first_beyond(line, critical), CRITICAL)])


def line_steps(line: Line) -> list[tuple[float | None, str]]:
    """Return the steps that draw threshold lines, each in the colour of the alert that fires beyond it."""
    threshold = THRESHOLDS.get(line.signal_name)
    if threshold is None or not threshold.below:
        return value_steps(line)
    steps: list[tuple[float | None, str]] = [(None, GOOD)]
    steps += [] if threshold.critical is None else [(threshold.critical, CRITICAL)]
    return steps + ([] if threshold.warning is None else [(threshold.warning, WARNING)])


def _first_beyond(line: Line, bound: float) -> float:
    """Return the lower bound of the step beyond `bound`: `bound + 1` for an item count, else `bound` itself.

    The result is at least MIN_VALUE, so that a value of 0 is not beyond a bound of 0.
    """
    counts_items = isinstance(line.signal.expression, Gauge) and line.signal.unit is Unit.COUNT
    return bound + 1 if counts_items else max(bound, MIN_VALUE)

"""Thresholds as Grafana's steps: a step begins at its value, where an alert begins beyond it.

Values take the colour of the step that they are in. A line is drawn at the beginning of a step, in that step's colour.
For alerts on low values that is the colour of the better side, so lines have steps of their own.
"""

from dashboards.expression import Level
from dashboards.grafana.panel_colours import CRITICAL, GOOD, WARNING
from dashboards.grafana.panel_model import Line
from dashboards.signals.signal import Unit
from dashboards.thresholds import THRESHOLDS

LEAST = 1e-9


def limits(line: Line) -> list[tuple[float | None, str]]:
    """Return from which value on which colour holds, ascending; the first holds from the least value on."""
    threshold = THRESHOLDS.get(line.signal)
    if threshold is None:
        return [(None, GOOD)]
    warning, critical = threshold.warning, threshold.critical
    if threshold.below:
        steps: list[tuple[float | None, str]] = [(None, WARNING if critical is None else CRITICAL)]
        steps += [] if critical is None else [(critical, GOOD if warning is None else WARNING)]
        return steps + ([] if warning is None else [(warning, GOOD)])
    steps = [(None, GOOD)]
    steps += [] if warning is None else [(_beyond(line, warning), WARNING)]
    return steps + ([] if critical is None else [(_beyond(line, critical), CRITICAL)])


def lines(line: Line) -> list[tuple[float | None, str]]:
    """Return the steps whose beginnings are drawn as lines: each has the colour of the alert that begins there."""
    threshold = THRESHOLDS.get(line.signal)
    if threshold is None or not threshold.below:
        return limits(line)
    drawn: list[tuple[float | None, str]] = [(None, GOOD)]
    drawn += [] if threshold.critical is None else [(threshold.critical, CRITICAL)]
    return drawn + ([] if threshold.warning is None else [(threshold.warning, WARNING)])


def _beyond(line: Line, value: float) -> float:
    """Return the least value that is more: of what is counted, one more."""
    counted = isinstance(line.of.expression, Level) and line.of.unit is Unit.COUNT
    return value + 1 if counted else max(value, LEAST)

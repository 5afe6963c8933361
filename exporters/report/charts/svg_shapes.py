"""Lines and points in a panel, as compact SVG paths."""

from collections.abc import Sequence
from math import log10

from exporters.charts.axes import Scale
from exporters.charts.plot_columns import Values


def y_of(scale: Scale, value: float | None, height: int) -> float | None:
    """Return the distance of a value from the panel's top; None if it is absent or cannot be drawn."""
    if value is None or (scale.log and value <= 0):
        return None
    low, high = (log10(scale.low), log10(scale.high)) if scale.log else (scale.low, scale.high)
    share = ((log10(value) if scale.log else value) - low) / (high - low)
    return height * (1 - min(max(share, 0.0), 1.0))


def line(style: str, x: Sequence[float], values: Values, scale: Scale, height: int) -> str:
    """Return a line that breaks where values are absent; an isolated value becomes a dot."""
    commands = []
    is_open = False
    for position, value in zip(x, values, strict=True):
        y = y_of(scale, value, height)
        if y is not None:
            commands.append(f"L{position:.5g} {y:.4g}" if is_open else f"M{position:.5g} {y:.4g}h0")
        is_open = y is not None
    drawn = "".join(commands)
    return f'<path class="line {style}" d="{drawn}"/>' if drawn else ""


def dots(style: str, x: Sequence[float], values: Values, scale: Scale, height: int) -> str:
    """Return a dot for each value."""
    points = ((position, y_of(scale, value, height)) for position, value in zip(x, values, strict=True))
    drawn = "".join(f"M{position:.4g} {y:.4g}h0" for position, y in points if y is not None)
    return f'<path class="dots {style}" d="{drawn}"/>' if drawn else ""

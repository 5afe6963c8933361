"""Value axes: their range, and tics at round numbers."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, log10

_VALUE_TIC_PX = 26.0
# Positive numbers outside this range cannot be measurements, and arithmetic with them could overflow.
_MIN, _MAX = 1e-30, 1e30
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True)
class Scale:
    """A value axis, logarithmic if `log` is true."""

    low: float
    high: float
    tics: tuple[float, ...]
    log: bool = False


def short(value: float) -> str:
    """Return a short form of a number, such as 0.5, 200 or 20k."""
    for power, letter in _PREFIXES:
        if value >= max(power, 1e4):
            return f"{value / power:.4g}{letter}"
    return f"{value:.4g}"


def linear(values: Iterable[float], height_px: float, low: float = 0.0) -> Scale:
    """Return a linear axis that contains `low` and all values."""
    inside = [min(max(value, -_MAX), _MAX) for value in values]
    high, low = max(inside, default=low + 1), min([low, *inside])
    if high - low < _MIN:
        high = low + (abs(low) if abs(low) > _MIN else 1)
    step = _round_step((high - low) / max(height_px / _VALUE_TIC_PX, 2))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return Scale(first * step, last * step, tuple(tic * step for tic in range(first, last + 1)))


def _round_step(least: float) -> float:
    power: float = 10.0 ** floor(log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def logarithmic(values: Iterable[float], height_px: float) -> Scale:
    """Return a logarithmic axis that contains all positive values."""
    inside = [min(max(value, _MIN), _MAX) for value in values if value > 0]
    low, high = min(inside, default=1.0), max(inside, default=10.0)
    powers = range(floor(log10(low)) - 1, ceil(log10(high)) + 2)
    fine = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    below = [edge for edge in fine if edge <= low * 1.0001]
    above = [edge for edge in fine if edge >= high * 0.9999 and edge > below[-1]]
    low, high = below[-1], above[0]
    decades = log10(high / low)
    room = max(height_px / _VALUE_TIC_PX, 2)
    if 3 * decades <= room:
        tics = [edge for edge in fine if low <= edge <= high]
    else:
        every = max(1, ceil(decades / room))
        powers = range(ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9) + 1)
        tics = [10.0**power for power in powers if power % every == 0]
    return Scale(low, high, tuple(tics), log=True)

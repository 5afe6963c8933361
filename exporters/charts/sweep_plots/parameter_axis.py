"""The axis of a parameter: its values as numbers, or as texts at equal distances."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from exporters.charts import axes
from exporters.charts.gnuplot_panel import scale_commands
from exporters.charts.plot_text import SMALL_PT, quoted, shortened
from exporters.results.sweep.sweep_rows import number_of

# With a greater ratio of the highest to the lowest value, the axis is logarithmic.
_LOGARITHMIC_RATIO = 50.0
_LABEL_PX = 60.0
_TIC_WIDTH = 2.0


@dataclass(frozen=True)
class ParameterAxis:
    """The positions of a parameter's values, in ascending order, and the gnuplot commands of the axis."""

    positions: Mapping[str, float]
    commands: Sequence[str]


def numbers_of(values: Sequence[str]) -> dict[str, float] | None:
    """Return the values as numbers; None if one of them is not a decimal number, or if two are equal."""
    numbers = {value: number for value in values if (number := number_of(value)) is not None}
    return numbers if len(set(numbers.values())) == len(set(values)) else None


def parameter_axis(axis: str, values: Sequence[str], length_px: float) -> ParameterAxis:
    """Return the axis (x or y) of a parameter that is drawn as a line."""
    numbers = numbers_of(values)
    if numbers is None or len(numbers) < 2:
        return category_axis(axis, values, length_px)
    ordered = dict(sorted(numbers.items(), key=lambda item: item[1]))
    low, high = min(numbers.values()), max(numbers.values())
    if low > 0 and high / low >= _LOGARITHMIC_RATIO:
        scale = axes.logarithmic(numbers.values(), length_px / _TIC_WIDTH)
    else:
        scale = axes.linear(numbers.values(), length_px / _TIC_WIDTH, low)
    return ParameterAxis(ordered, scale_commands(axis, scale))


def category_axis(axis: str, values: Sequence[str], length_px: float, room_px: float = _LABEL_PX) -> ParameterAxis:
    """Return an axis with the values at equal distances; numbers are in ascending order, texts as they were given."""
    numbers = numbers_of(values)
    ordered = list(values) if numbers is None else sorted(values, key=numbers.__getitem__)
    every = -(-len(ordered) // max(1, int(length_px // room_px)))
    tics = ", ".join(
        f"{quoted(shortened(value, SMALL_PT, room_px))} {index}"
        for index, value in enumerate(ordered)
        if index % every == 0
    )
    commands = [
        f"unset logscale {axis}",
        f"set {axis}range [-0.5:{len(ordered) - 0.5:g}]",
        f"set {axis}tics ({tics})",
    ]
    return ParameterAxis({value: float(index) for index, value in enumerate(ordered)}, commands)

"""Axes: every value is on its axis, and there are only a few tics, at round numbers."""

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from exporters.charts.axes import TimeAxis, linear, logarithmic, short, time_axis
from exporters.charts.gnuplot_panel import time_axis_commands
from exporters.charts.plot_data import CLUSTER, PlotData
from tests.every import every

heights = st.floats(40, 1000)


@given(st.lists(st.floats(-1e25, 1e25)), heights)
@example([1e-38, -2e-221], 40.0)
def test_every_value_is_on_a_linear_axis(values: list[float], height: float) -> None:
    scale = linear(values, height)
    assert scale.low < scale.high
    # On an axis with a very small range, rounding errors can exceed a millionth of the range.
    tolerance = 1e-6 * (scale.high - scale.low) + 1e-12 * max(abs(scale.low), abs(scale.high))
    assert all(scale.low - tolerance <= value <= scale.high + tolerance for value in values)
    assert 2 <= len(scale.tics) <= height / 13 + 4
    assert all(a < b for a, b in pairwise(scale.tics))


@given(st.lists(st.floats(1e-25, 1e25)), heights)
def test_every_value_is_on_a_logarithmic_axis(values: list[float], height: float) -> None:
    scale = logarithmic(values, height)
    assert 0 < scale.low < scale.high
    assert all(scale.low * 0.999 <= value <= scale.high * 1.001 for value in values)
    assert len(scale.tics) <= height / 20 + 3
    assert all(scale.low * 0.999 <= tic <= scale.high * 1.001 for tic in scale.tics)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)), heights)
def test_axes_of_extreme_values_have_a_positive_length(values: list[float], height: float) -> None:
    assert linear(values, height).low < linear(values, height).high
    assert logarithmic(values, height).low < logarithmic(values, height).high


def test_a_linear_axis_begins_at_zero() -> None:
    assert linear([900.0, 1100.0], 150).low == 0
    assert linear([900.0, 1100.0], 150).tics == (0, 200, 400, 600, 800, 1000, 1200)
    assert logarithmic([0.3, 40.0], 200).tics == (0.2, 0.5, 1, 2, 5, 10, 20, 50)


def test_tic_labels_are_short() -> None:
    assert [short(value) for value in (0, 0.5, 1500, 20_000, 3e6, 2e9)] == ["0", "0.5", "1500", "20k", "3M", "2G"]


def run_of(begin_s: float, seconds: float, count: int, zone_s: int = 0) -> PlotData:
    times = [begin_s + seconds * (index + 1) for index in range(count)]
    return PlotData("r", seconds, times, {CLUSTER: [None] * count}, zone_s=zone_s)


def test_the_time_axis_begins_at_the_first_interval() -> None:
    axis = time_axis(run_of(100.0, 5.0, 4), 0, 400)
    assert (axis.begin_s, axis.end_s) == (100.0, 120.0)
    assert axis.px(110.0) == 200.0


@every(
    ("seconds", "form"),
    [(2, "%H:%M:%.1S"), (10, "%H:%M:%S"), (600, "%H:%M'"), (40 * 3600, "%m-%d %H:%M"), (90 * 86400, "%Y-%m-%d")],
)
def test_the_time_format_depends_on_the_length_of_the_run(seconds: float, form: str) -> None:
    commands = "\n".join(time_axis_commands(TimeAxis(0.0, seconds, 0, 1000, 0), labels=True))
    assert form in commands


def test_tics_are_at_round_local_times() -> None:
    # Nepal is 5:45 ahead of UTC.
    commands = time_axis_commands(TimeAxis(1000.0, 1600.0, 0, 700, 20700), labels=True)
    assert "(21720, 21840, 21960, 22080, 22200)" in commands[1]


def test_an_empty_run_has_a_time_axis() -> None:
    axis = time_axis(run_of(0.0, 1.0, 0), 0, 100)
    assert axis.begin_s < axis.end_s

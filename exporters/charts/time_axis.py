"""The time axis: local time, with tics at round times of day."""

from dataclasses import dataclass
from math import ceil, floor

from exporters.charts.plot_data import Run
from exporters.charts.plot_page import TEXT_PT
from exporters.charts.text_escaping import width_px

_STEPS_S = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1, 2, 5, 10, 15, 30),
    *(60 * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(3600 * hours for hours in (1, 2, 3, 6, 12)),
    *(86400 * days for days in (1, 2, 7, 14, 28, 56, 112, 365)),
)
_TIC_PX = 84.0
# How far the last label may extend beyond the axis, in pixels.
END_PX = 60.0
_MAX_TICS = 200


@dataclass(frozen=True)
class TimeAxis:
    """A time range and its position in pixels.

    Times are in seconds since the epoch, or since the start if `is_elapsed` is true.
    """

    begin_s: float
    end_s: float
    left: float
    right: float
    zone_s: int
    is_elapsed: bool = False

    def px(self, time_s: float) -> float:
        """Return a time's horizontal position, in pixels from the page's left edge."""
        return self.left + (time_s - self.begin_s) / (self.end_s - self.begin_s) * (self.right - self.left)

    def inside(self, begin_s: float, end_s: float) -> tuple[float, float] | None:
        """Return the visible part of a time range; None if no part of it is visible."""
        begin_s, end_s = max(begin_s, self.begin_s), min(end_s, self.end_s)
        return (begin_s, end_s) if begin_s < end_s else None

    def at(self, time_s: float) -> str:
        """Return a time as a coordinate of the axis, which shows local time."""
        return f"{time_s + self.zone_s:.14g}"

    def commands(self, labels: bool, beyond_px: float = END_PX) -> list[str]:
        """Return the commands that set up the axis; `labels` is true only for the lowest panel.

        The last label is left out if it extends more than `beyond_px` beyond the axis.
        """
        step = self.step()
        begin, end = self.begin_s + self.zone_s, self.end_s + self.zone_s
        first, last = ceil(begin / step), floor(end / step)
        form, unit = self._format(step) if labels else ("", "")
        half = width_px(form.replace("%Y", "0000").replace("%t", "%").replace("%", "0"), TEXT_PT) / 2
        tics = ", ".join(
            f"{self._hidden(tic * step, half - beyond_px)}{tic * step:.14g}"
            for tic in range(first, min(last, first + _MAX_TICS) + 1)
        )
        return [
            f"set xrange [{begin:.14g}:{end:.14g}]",
            f"set xtics time format '{form}' ({tics})",
            f"set xlabel '{f'{self._meaning}, {unit}' if labels else ''}' tc rgb ink",
        ]

    def _hidden(self, local_s: float, reaches_px: float) -> str:
        return "'' " if self.px(local_s - self.zone_s) + reaches_px > self.right else ""

    def step(self) -> float:
        """Return the time between two tics, in seconds."""
        least = (self.end_s - self.begin_s) / max((self.right - self.left) / _TIC_PX, 1)
        return next((step for step in _STEPS_S if step >= least), least)

    @property
    def _meaning(self) -> str:
        return "time since the start" if self.is_elapsed else "local time"

    def _format(self, step: float) -> tuple[str, str]:
        """Return the time format for the tic labels, and its description for the axis title."""
        if self.is_elapsed and self.end_s - self.begin_s > 86400:
            return "%tH:%M", "h:min"
        if step >= 86400:
            return "%Y-%m-%d", "date"
        if self.end_s - self.begin_s > 86400:
            return "%m-%d %H:%M", "month-day h:min"
        if step >= 60:
            return "%H:%M", "h:min"
        digits = 0 if step >= 1 else 1 if step >= 0.1 else 3
        return (f"%H:%M:%.{digits}S" if digits else "%H:%M:%S"), "h:min:s"


def time_axis(run: Run, left: float, right: float, *, is_elapsed: bool = False) -> TimeAxis:
    """Return a run's time axis. It begins one interval before the first time, which is the end of an interval."""
    begin_s = run.times[0] - run.interval_s if run.times else 0.0
    end_s = run.times[-1] if run.times else run.interval_s or 1.0
    return TimeAxis(begin_s, max(end_s, begin_s + 1e-3), left, right, run.zone_s, is_elapsed)

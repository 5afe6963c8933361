"""The time axis: local time, with tics at round times of day."""

from dataclasses import dataclass

from exporters.charts.plot_data import Run

_STEPS_S = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1, 2, 5, 10, 15, 30),
    *(60 * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(3600 * hours for hours in (1, 2, 3, 6, 12)),
    *(86400 * days for days in (1, 2, 7, 14, 28, 56, 112, 365)),
)
_TIME_TIC_PX = 84.0


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

    def step(self) -> float:
        """Return the time between two tics, in seconds."""
        least = (self.end_s - self.begin_s) / max((self.right - self.left) / _TIME_TIC_PX, 1)
        return next((step for step in _STEPS_S if step >= least), least)


def time_axis(run: Run, left: float, right: float, *, is_elapsed: bool = False) -> TimeAxis:
    """Return a run's time axis. It begins one interval before the first time, which is the end of an interval."""
    begin_s = run.times[0] - run.interval_s if run.times else 0.0
    end_s = run.times[-1] if run.times else run.interval_s or 1.0
    return TimeAxis(begin_s, max(end_s, begin_s + 1e-3), left, right, run.zone_s, is_elapsed)

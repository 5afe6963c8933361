"""The progress of a sweep: a line for each run, with the remaining time."""

from collections.abc import Sequence
from statistics import fmean

from collector.runs.parameter_sweep import Sweep, SweepRun

# The estimated time that a run takes in addition to its duration, before the first run has ended.
OVERHEAD_S = 15.0


def progress_line(number: int, sweep: Sweep, combination: str, repeat: int) -> str:
    """Return the line that announces a run; `number` is its number, counted from 1."""
    repeats = f", repeat {repeat}" if sweep.repeats > 1 else ""
    remaining = remaining_s(sweep)
    left = "" if remaining is None else f" … {duration_text(remaining)} left"
    return f"[{number}/{sweep.run_count}] {combination}{repeats}{left}"


def remaining_s(sweep: Sweep) -> float | None:
    """Return the estimated time until the sweep ends, in seconds; None if it cannot be estimated."""
    count = sweep.run_count - len(sweep.runs)
    run_s = _run_s(sweep.runs)
    if run_s is None and sweep.settings.duration_s is not None:
        run_s = sweep.settings.duration_s + sweep.settings.cool_down_s + OVERHEAD_S
    return None if run_s is None else count * run_s + max(0, count - 1) * sweep.pause_s


def _run_s(runs: Sequence[SweepRun]) -> float | None:
    """Return the mean time that successful runs took; that of failed runs if none succeeded."""
    times_s = [run.end_s - run.begin_s for run in runs if not run.problem] or [run.end_s - run.begin_s for run in runs]
    return fmean(times_s) if times_s else None


def duration_text(seconds: float) -> str:
    """Return a duration such as 50 s, 41 min or 3 h 5 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"

"""Aligns several runs: each phase begins at the same time in all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import ceil
from typing import TypeVar

from collector.model.histogram import Buckets
from exporters.charts.overlay.client_phases import PhaseClient, client_series
from exporters.charts.plot_data import Phase, Row, Run

Value = TypeVar("Value")
# Times since the epoch have an error of less than a microsecond.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class PhaseRows:
    """A phase of one run.

    rows     the cluster's rows, keyed by the number of the interval in the phase.
    buckets  keyed by operation ("read", "write"): each known merged latency histogram of an interval.
    client   what the clients saw; None if the run has no client results.
    """

    name: str
    length_s: float
    is_measured: bool
    rows: Mapping[int, Row]
    buckets: Mapping[str, Mapping[int, Buckets]]
    client: PhaseClient | None = None


def bucket_key(operation: str, run: str) -> str:
    """Return the key of a run's histograms in the buckets of aligned runs."""
    return f"{operation} {run}"


def aligned(runs: Mapping[str, Sequence[PhaseRows]], interval_s: float, footer: Sequence[str]) -> Run:
    """Return several runs with the same phases as one run that has their rows instead of those of nodes.

    Its times are in seconds since the start, and the keys of its histograms are those of `bucket_key`. A phase is as
    long as its longest occurrence, rounded up to whole intervals.
    """
    counts = [
        max(1, *(ceil(phase.length_s / interval_s - _TOLERANCE) for phase in occurrences))
        for occurrences in zip(*runs.values(), strict=True)
    ]
    starts = [*accumulate(counts, initial=0)]
    phases = [
        Phase(begin * interval_s, end * interval_s, phase.name, not phase.is_measured)
        for (begin, end), phase in zip(pairwise(starts), next(iter(runs.values())), strict=True)
    ]
    rows = {name: _joined([phase.rows for phase in of_run], starts) for name, of_run in runs.items()}
    buckets = {
        bucket_key(operation, name): _joined([phase.buckets.get(operation, {}) for phase in of_run], starts)
        for name, of_run in runs.items()
        for operation in {operation for phase in of_run for operation in phase.buckets}
    }
    times = [(number + 1) * interval_s for number in range(starts[-1])]
    clients = {
        name: client_series(of_phases, [phase.begin_s for phase in phases], [not phase.warm_up for phase in phases])
        for name, of_run in runs.items()
        if len(of_phases := [phase.client for phase in of_run if phase.client]) == len(phases)
    }
    return Run(f"{len(runs)} runs", interval_s, times, rows, buckets, phases=phases, footer=footer, clients=clients)


def _joined(phases: Sequence[Mapping[int, Value]], starts: Sequence[int]) -> list[Value | None]:
    """Return the values of consecutive phases; `starts` has the beginning of each phase, and the end of the last."""
    values: list[Value | None] = [None] * starts[-1]
    for start, phase in zip(starts, phases, strict=False):
        for number, value in phase.items():
            values[start + number] = value
    return values

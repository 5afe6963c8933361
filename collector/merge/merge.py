"""Merges recordings, using the columnar merge if its packages are installed."""

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

from collector.merge.merge_job import Job, Merged, Product
from collector.merge.recordings import Recording
from collector.merge.reference_merge import reference_merge

COLUMNAR_NEEDS = ("numpy", "orjson")
"""The packages of casstat[analysis] that the columnar merge needs."""


def merge(
    recordings: Sequence[Recording], job: Job[Product], processes: int = 1, done: Callable[[int], None] = lambda _: None
) -> Merged[Product]:
    """Merge recordings onto one grid; see `merge_all`."""
    return merge_all(recordings, [job], processes, done)[0]


def merge_all(
    recordings: Sequence[Recording],
    jobs: Sequence[Job[Any]],
    processes: int = 1,
    done: Callable[[int], None] = lambda _: None,
) -> list[Merged[Any]]:
    """Return the result of each job, reading the recordings once; call `done` with the number of newly merged nodes.

    The jobs must have the same clocks and the same `max_series`. Raises OSError and TooManySeriesError.
    """
    if all(importlib.util.find_spec(name) for name in COLUMNAR_NEEDS):
        # Imported here because sampling processes must not load numpy.
        from collector.merge.columnar.columnar_merge import columnar_merge

        return columnar_merge(recordings, jobs, processes, done)
    return [reference_merge(recordings, job, done if job is jobs[0] else lambda _: None) for job in jobs]

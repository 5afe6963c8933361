"""The last reading of every series, which one block of lines hands to the next."""

from dataclasses import dataclass

from collector.cluster.columnar.arrays import Ints
from collector.model.metric import Series

SourceSeries = tuple[str, Series]
"""A source, and one of its series."""


@dataclass(frozen=True)
class LastReading:
    """The last reading of a series; `counts` are the buckets of a histogram."""

    value: float | int | None
    at_s: float
    origin: str
    counts: Ints | None = None


LastReadings = dict[SourceSeries, LastReading]
"""The last reading of every series of a session."""

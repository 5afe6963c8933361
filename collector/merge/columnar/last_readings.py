"""The last reading of every series, which is passed from one block of lines to the next."""

from typing import NamedTuple

from collector.merge.columns import Ints
from collector.model.metric import Series

SourceSeries = tuple[str, Series]
"""A source and one of its series."""


class LastReading(NamedTuple):
    """A series' last reading; `counts` contains the bucket counts if it is a histogram."""

    value: float | int | None
    at_s: float
    origin: str
    counts: Ints | None = None


LastReadings = dict[SourceSeries, LastReading]
"""The last reading of every series in a session."""

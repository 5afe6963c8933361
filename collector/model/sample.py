"""Samples: the values of one interval, derived from two snapshots.

A value that is not known is absent: neither 0 nor the previous value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from collector.model.histogram import Buckets
from collector.model.metric import Series, Value
from collector.model.snapshot import Event, Tick


class Reading(NamedTuple):
    """The last raw value of a series, the monotonic time of its scrape, and its source's origin."""

    value: Value
    at_s: float
    origin: str


class Rate(NamedTuple):
    """A counter's increase, in the metric's unit, and the time it covers.

    aggregated_per_s  for several nodes, their rates aggregated as the metric defines; None for one node. It cannot be
                      computed from the increase, which is always a sum, and the elapsed time, which may differ
                      between nodes.
    """

    increase: float
    elapsed_s: float
    aggregated_per_s: float | None = None

    @property
    def per_s(self) -> float:
        """The mean rate over the interval."""
        return self.increase / self.elapsed_s if self.aggregated_per_s is None else self.aggregated_per_s


Derived = float | str | Rate | Buckets
"""A value in a sample: that of a gauge, a text metric, a counter or a histogram, respectively."""


@dataclass(frozen=True)
class Sample:
    """The values of one node in one interval, in base units.

    elapsed_s   for each source, the time that its rates cover.
    last_known  stale values, from before this interval, of sources that are read at their own pace; never summed.
    age_s       the age of the `last_known` values; None if every source is read on every tick.
    spread      for each gauge that is the mean of several readings, their minimum and maximum.
    """

    node: str
    tick: Tick
    values: Mapping[Series, Derived]
    elapsed_s: Mapping[str, float]
    events: tuple[Event, ...] = ()
    last_known: Mapping[Series, Derived] = field(default_factory=dict)
    age_s: float | None = None
    spread: Mapping[Series, tuple[float, float]] = field(default_factory=dict)

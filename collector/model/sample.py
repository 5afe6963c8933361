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
    """The last raw value of a series, its monotonic time, and the origin of its source."""

    value: Value
    at_s: float
    origin: str


class Rate(NamedTuple):
    """The increase of a counter, in the metric's unit, and the time it covers.

    aggregated_per_s  for several nodes, their rates aggregated as the metric defines; None for one node. The increase
                      is always the sum, and the nodes need not cover the same time.
    """

    increase: float
    elapsed_s: float
    aggregated_per_s: float | None = None

    @property
    def per_s(self) -> float:
        """The mean rate over the interval."""
        return self.increase / self.elapsed_s if self.aggregated_per_s is None else self.aggregated_per_s


Derived = float | str | Rate | Buckets
"""A sample's value of a gauge, text, counter or histogram."""


@dataclass(frozen=True)
class Sample:
    """The values of one node in one interval, in base units.

    elapsed_s   the time that the rates of each source cover.
    last_known  stale values, from before this interval, of sources that are read at their own pace; never summed.
    age_s       the age of these values; None if every source is read on every tick.
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

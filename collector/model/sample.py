"""What is derived from two snapshots: rates, and the values of one interval as a sample.

A number that is not known is absent: neither 0 nor a stale value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from collector.model.histogram import Buckets
from collector.model.metric import Series, Value
from collector.model.snapshot import Event, Tick


class Reading(NamedTuple):
    """The last raw value of a series, when it was read and what it counts from."""

    value: Value
    at_s: float
    origin: str


class Rate(NamedTuple):
    """What a counter gained, in the metric's unit, and over how long.

    together_per_s  of several nodes: their rates, aggregated as the metric says; None for one node. The increase is
                    the sum in any case, and the nodes need not cover the same time.
    """

    increase: float
    elapsed_s: float
    aggregated_per_s: float | None = None

    @property
    def per_s(self) -> float:
        """The mean rate over the interval."""
        return self.increase / self.elapsed_s if self.aggregated_per_s is None else self.aggregated_per_s


Derived = float | str | Rate | Buckets
"""Of gauges, texts, counters and histograms."""


@dataclass(frozen=True)
class Sample:
    """What happened on one node in one interval, in base units. A series that is absent is not known."""

    node: str
    tick: Tick
    values: Mapping[Series, Derived]
    elapsed_s: Mapping[str, float]
    """By source: how long its rates of this interval cover."""
    events: tuple[Event, ...] = ()
    last_known: Mapping[Series, Derived] = field(default_factory=dict)
    """What a source that answers at its own pace said before this interval: no news, and never part of a sum."""
    age_s: float | None = None
    """How long ago such a source was read; None where every source is read in every tick."""
    spread: Mapping[Series, tuple[float, float]] = field(default_factory=dict)
    """Of a gauge that is the mean of several readings: the least and the greatest of them."""

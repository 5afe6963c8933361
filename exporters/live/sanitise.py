"""What a node says, looked at before it is believed: how it is, what happened, and figures that can be."""

from collections.abc import Iterable
from dataclasses import replace
from math import isfinite

from collector.catalogue import CATALOGUE
from collector.cluster.aggregation import WATCHED
from collector.model.histogram import Buckets
from collector.model.metric import Series
from collector.model.sample import Derived, Rate, Sample
from collector.model.snapshot import Event
from collector.printable import one_line
from collector.sampling.source_names import JOLOKIA_SOURCE
from exporters.live.frame import ClusterEvent, State
from exporters.live.live_columns import MODE

MOST_EVENTS, LONGEST_NAME, LONGEST_TEXT = 20, 64, 256
# What is beyond is no figure of any node, and sums of it would be no numbers.
LARGEST, MOST_EDGES = 1e30, 512
# Of any clock: in the year 2096.
LATEST_S = 4e9


def state_of(sample: Sample) -> tuple[State, str]:
    """Return how a node is, and what is wrong with it."""
    mode = sample.values.get((MODE,), sample.last_known.get((MODE,)))
    why = next((event.text for event in sample.events if event.kind == "no_answer"), "")
    if mode is None and not any(
        series[0].startswith("cassandra_") for each in (sample.values, sample.last_known) for series in each
    ):
        return State.SILENT, one_line(why).removeprefix(f"{JOLOKIA_SOURCE}: ")
    if isinstance(mode, str) and mode != "NORMAL":
        return State.CHANGING, one_line(mode.lower())
    return State.UP, one_line(why)


def told_of(node: str, event: Event, sample: Sample) -> ClusterEvent | None:
    """Return an event as it is shown; that a node does not answer is told by its state."""
    if event.kind == "no_answer":
        return None
    time_s = event.time_s
    if time_s is None or not 0 <= time_s <= LATEST_S:
        time_s = sample.tick.time_s
    return ClusterEvent(time_s, node, one_line(event.kind)[:LONGEST_NAME], one_line(event.text))


def sanitised(sample: Sample) -> Sample:
    """Return the sample without what no node can have measured, its disk and network called as everywhere."""
    return replace(sample, values=_tamed(sample.values.items()), last_known=_tamed(sample.last_known.items()))


def _tamed(items: Iterable[tuple[Series, Derived]]) -> dict[Series, Derived]:
    found: dict[Series, Derived] = {}
    for series, value in items:
        metric = CATALOGUE.get(series[0])
        if metric is not None and _is_sane(value):
            is_device = metric.labels == ("device",) and len(series) == 2
            found[(series[0], WATCHED) if is_device else series] = value
    return found


def _is_sane(value: Derived) -> bool:
    if isinstance(value, Buckets):
        return len(value.upper_bounds) <= MOST_EDGES and value.total <= LARGEST
    if isinstance(value, Rate):
        return abs(value.increase) <= LARGEST and 1 / LARGEST < value.elapsed_s <= LARGEST
    return len(value) <= LONGEST_TEXT if isinstance(value, str) else isfinite(value) and abs(value) <= LARGEST

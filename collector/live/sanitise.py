"""Sanitises samples received over the network: keeps only plausible values, and derives states and events."""

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite

from collector.live.cluster_interval import ClusterEvent, State
from collector.merge.aggregation import WATCHED
from collector.model.histogram import Buckets
from collector.model.metric import Series
from collector.model.sample import Derived, Rate, Sample
from collector.model.sample_json import MAX_BUCKETS
from collector.model.snapshot import JOLOKIA_SOURCE, Event
from collector.node.catalogue import CATALOGUE
from collector.printable import one_line

OPERATION_MODE: Series = ("cassandra_operation_mode",)
REQUEST_COUNTERS = frozenset({"cassandra_client_requests_total", "cassandra_local_operations_total"})
MAX_EVENTS, MAX_NAME_CHARS, MAX_TEXT_CHARS = 20, 64, 256
# Values above MAX_VALUE are implausible, and their sums may overflow.
MAX_VALUE = 1e30
MIN_ELAPSED_S = 1 / MAX_VALUE
# The latest plausible time on any clock (in the year 2096).
MAX_TIME_S = 4e9
_OF_DEVICES = frozenset(name for name, metric in CATALOGUE.items() if metric.labels == ("device",))


def state_of(sample: Sample) -> tuple[State, str]:
    """Return the node's state, and the reason for it as one line ("" if there is none)."""
    mode = sample.values.get(OPERATION_MODE, sample.last_known.get(OPERATION_MODE))
    reason = next((event.text for event in sample.events if event.kind == "no_answer"), "")
    if mode is None and not _has_cassandra_values(sample):
        return State.SILENT, one_line(reason).removeprefix(f"{JOLOKIA_SOURCE}: ")
    if isinstance(mode, str) and mode != "NORMAL":
        return State.CHANGING, one_line(mode.lower())
    return State.UP, one_line(reason)


def _has_cassandra_values(sample: Sample) -> bool:
    return any(series[0].startswith("cassandra_") for values in (sample.values, sample.last_known) for series in values)


def has_request_rates(sample: Sample | None) -> bool:
    """Return whether the sample contains a request rate; a node's first interval has none."""
    return sample is not None and any(
        series[0] in REQUEST_COUNTERS and isinstance(value, Rate)
        for values in (sample.values, sample.last_known)
        for series, value in values.items()
    )


def cluster_event(node: str, event: Event, sample: Sample) -> ClusterEvent | None:
    """Return an event that is safe to display, or None for `no_answer`, which the node's state already shows."""
    if event.kind == "no_answer":
        return None
    time_s = event.time_s
    if time_s is None or not 0 <= time_s <= MAX_TIME_S:
        time_s = sample.tick.time_s
    return ClusterEvent(time_s, node, one_line(event.kind)[:MAX_NAME_CHARS], one_line(event.text))


def sanitised(sample: Sample) -> Sample:
    """Return the sample without unknown metrics and implausible values, and with its devices labelled WATCHED."""
    return replace(sample, values=_plausible(sample.values), last_known=_plausible(sample.last_known))


def _plausible(values: Mapping[Series, Derived]) -> dict[Series, Derived]:
    return {
        (series[0], WATCHED) if series[0] in _OF_DEVICES and len(series) == 2 else series: value
        for series, value in values.items()
        if series[0] in CATALOGUE and _is_plausible(value)
    }


def _is_plausible(value: Derived) -> bool:
    if isinstance(value, Rate):
        increase, elapsed_s, per_s = value
        is_plausible_sum = per_s is None or -MAX_VALUE <= per_s <= MAX_VALUE
        return -MAX_VALUE <= increase <= MAX_VALUE and MIN_ELAPSED_S < elapsed_s <= MAX_VALUE and is_plausible_sum
    if isinstance(value, Buckets):
        return len(value.upper_bounds) <= MAX_BUCKETS and value.total <= MAX_VALUE
    return len(value) <= MAX_TEXT_CHARS if isinstance(value, str) else isfinite(value) and abs(value) <= MAX_VALUE

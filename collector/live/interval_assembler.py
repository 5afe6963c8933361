"""Assembles samples from many nodes into cluster intervals.

An interval contains the samples that arrived before it was closed, and the number of nodes that they came from. A node
that is late or gone is left out; its values are not estimated. Clock offsets are corrected by whole intervals. Of
samples received over the network, only plausible values are kept.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite

from collector.live.cluster_interval import (
    ClusterEvent,
    ClusterInterval,
    CountedNode,
    CountedNodes,
    NodeInfo,
    NodeStatus,
    State,
)
from collector.merge.grid import Grid
from collector.model.histogram import Buckets
from collector.model.metric import Series
from collector.model.rates import Summary
from collector.model.sample_json import MAX_BUCKETS
from collector.model.snapshot import JOLOKIA_SOURCE, WATCHED, Derived, Event, Rate, Sample
from collector.node.catalogue import CATALOGUE
from collector.node.metrics.separate_writes import with_separate_writes
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
# The shortest delay among the last DELAYS samples serves as the estimate of a node's clock offset.
DELAYS = 5
# A clock offset is not corrected if its estimate is between EARLY - 0.5 and EARLY + 0.5 intervals. The range is not
# centred on 0 because samples arrive late rather than early.
EARLY = 0.1
# Number of intervals without a sample after which a node is considered gone.
GONE_AFTER = 5
# Maximum number of open intervals per node. An open interval holds at most MAX_OPEN * DELAYS samples.
MAX_OPEN = 16


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


class _Node:
    def __init__(self, name: str, summed_gauges: frozenset[str]) -> None:
        self.name = name
        self.info = NodeInfo()
        self.open: dict[int, list[Sample]] = {}
        self.delays: deque[float] = deque(maxlen=DELAYS)
        self.received_s: float | None = None
        self.answered_s: float | None = None
        self.problem = ""
        self.state = State.NEW
        self.reason = ""
        self.events: list[ClusterEvent] = []
        self.last_sample: Sample | None = None
        self.duplicate_of = ""
        self._summed_gauges = summed_gauges
        self._reported: frozenset[Series] = frozenset()

    def missing_gauges(self, sample: Sample) -> frozenset[Series]:
        """Return the summed gauges that the node reported earlier but not in this sample; none if it is silent.

        Also records the gauges in this sample.
        """
        current = {series for series in sample.values if series[0] in self._summed_gauges}
        before = self._reported
        self._reported = before | current
        return before - current if self.state in (State.UP, State.CHANGING) else frozenset()

    def add_state_change(self, before: State, time_s: float) -> None:
        """Add an event if the state differs from `before` and neither of them is NEW."""
        if before is not self.state and State.NEW not in (before, self.state):
            text = self._reason() or f"is {self.state.value} again"
            self.events.append(ClusterEvent(time_s, self.name, self.state.value, text))

    def status(self, sample: Sample | None, age_s: float | None, *, is_current: bool) -> NodeStatus:
        return NodeStatus(self.name, self.info, self.state, sample, is_current, self._reason(), age_s)

    def _reason(self) -> str:
        return f"duplicate of {self.duplicate_of}, counted once" if self.duplicate_of else self.reason


class IntervalAssembler:
    """Collects samples and failures from nodes, each identified by a key, and closes intervals.

    `summed_gauges` contains the gauges whose sum is omitted if a node lacks them, since the sum would appear to drop.
    """

    def __init__(self, interval_s: float, summed_gauges: frozenset[str] = frozenset()) -> None:
        self.grid = Grid(interval_s)
        self._interval_s = interval_s
        self._summed_gauges = summed_gauges
        self._nodes: dict[str, _Node] = {}
        self._closed = -(1 << 62)
        self._open = 0

    @property
    def keys(self) -> Sequence[str]:
        """The nodes' keys, in the order of `ClusterInterval.nodes`."""
        return list(self._nodes)

    def add_node(self, key: str, name: str) -> None:
        """Add a node; `name` is used until its samples contain one."""
        self._nodes.setdefault(key, _Node(name, self._summed_gauges))

    def set_info(self, key: str, info: NodeInfo) -> None:
        """Set a node's properties; its cluster and location are limited to one line of MAX_NAME_CHARS characters."""
        cluster, location = one_line(info.cluster)[:MAX_NAME_CHARS], one_line(info.location)[:MAX_NAME_CHARS]
        self._nodes[key].info = replace(info, cluster=cluster, location=location)

    def info(self, key: str) -> NodeInfo:
        return self._nodes[key].info

    def add_sample(self, key: str, sample: Sample, now_s: float) -> None:
        """Add a sample that arrived at `now_s` (wall-clock time)."""
        if not 0 <= sample.tick.time_s <= MAX_TIME_S:
            self.add_failure(key, "its clock shows an implausible time")
            return
        node = self._nodes[key]
        node.problem, node.received_s = "", now_s
        node.name = one_line(sample.node)[:MAX_NAME_CHARS] or node.name
        node.delays.append(now_s - sample.tick.time_s)
        index = self._index(node, sample)
        if not has_request_rates(node.last_sample):
            # Count a new node's samples in the next open interval; otherwise, a node that is always late would never
            # appear.
            index = max(index, self._closed + 1)
        if index > self._closed and len(node.open) < MAX_OPEN:
            samples = node.open.setdefault(index, [])
            if len(samples) < MAX_OPEN * DELAYS:
                samples.append(with_separate_writes(sanitised(sample)))
        for event in sample.events[:MAX_EVENTS]:
            shown = cluster_event(node.name, event, sample)
            if shown is not None:
                node.events.append(shown)
        del node.events[:-MAX_EVENTS]

    def add_last_sample(self, key: str, sample: Sample, now_s: float) -> None:
        """Add the sample of the agent's latest tick to the open interval, unless it is too old.

        Without it, the node would appear only after its next tick.
        """
        node = self._nodes[key]
        node_interval_s = node.info.interval_s or self._interval_s
        if abs(now_s - sample.tick.time_s) <= GONE_AFTER * node_interval_s:
            node.name = one_line(sample.node)[:MAX_NAME_CHARS] or node.name
            node.received_s, node.problem = now_s, ""
            node.open.setdefault(self._open, []).append(with_separate_writes(sanitised(sample)))

    def add_failure(self, key: str, reason: str) -> None:
        """Record why a node has no usable sample, for example because it or its agent is not answering."""
        node = self._nodes[key]
        node.problem = one_line(reason)
        if node.received_s is None:
            node.state = State.GONE

    def _index(self, node: _Node, sample: Sample) -> int:
        """Return the index of a sample's interval, after correcting its time by the node's clock offset."""
        step_s = self._interval_s
        offset_s = round((min(node.delays) - EARLY * step_s) / step_s) * step_s
        covered_s = min(node.info.interval_s or step_s, step_s)
        index = self.grid.index_of(sample.tick.time_s + offset_s, covered_s)
        return self._closed if index is None else index

    def is_complete(self, index: int, *, first: bool = False) -> bool:
        """Return whether all reachable nodes have reported for an interval; new nodes count only if `first` is true.

        Also makes it the open interval, to which `add_last_sample` adds samples.
        """
        self._open = index
        nodes = (node for node in self._nodes.values() if not node.problem and (first or node.state is not State.NEW))
        return all(index in node.open for node in nodes)

    def rewind(self, index: int) -> None:
        """Continue with an earlier interval after the local clock has been set back."""
        self._closed = index - 1
        for node in self._nodes.values():
            node.open.clear()
            node.delays.clear()

    def close(self, index: int, now_s: float) -> ClusterInterval:
        """Close an interval and return it; samples for it that arrive later are discarded."""
        self._closed = index
        end_s = self.grid.end_of(index)
        nodes = list(self._nodes.values())
        samples = [self._take(node, index) for node in nodes]
        self._find_duplicates()
        rows = tuple(self._row(node, sample, now_s, end_s) for node, sample in zip(nodes, samples, strict=True))
        counted = CountedNodes.of(
            CountedNode(index, node.info, sample, node.missing_gauges(sample))
            for index, (node, sample) in enumerate(zip(nodes, map(_with_last_gauges, samples), strict=True))
            if sample and not node.duplicate_of
        )
        names = {node.info.cluster for node in nodes if node.info.cluster}
        return ClusterInterval(
            end_s,
            self._interval_s,
            next(iter(names)) if len(names) == 1 else "",
            rows,
            counted.merged_sample(counted.by_location, end_s),
            counted,
            self._take_events(),
        )

    def _take(self, node: _Node, index: int) -> Sample | None:
        """Return a node's sample for an interval, and discard its samples for earlier intervals."""
        samples = node.open.pop(index, [])
        for late in [late for late in node.open if late < index]:
            del node.open[late]
        if len(samples) < 2:
            return samples[0] if samples else None
        summary = Summary()
        for sample in samples:
            summary.add(sample)
        total = summary.sample()
        last = samples[-1]
        return None if total is None else replace(total, events=last.events, last_known=last.last_known)

    def _find_duplicates(self) -> None:
        """Mark nodes that were added more than once, under different addresses."""
        key_by_name: dict[str, str] = {}
        for key, node in self._nodes.items():
            if node.received_s is not None:
                first_key = key_by_name.setdefault(node.name, key)
                node.duplicate_of = "" if first_key == key else first_key

    def _row(self, node: _Node, sample: Sample | None, now_s: float, end_s: float) -> NodeStatus:
        before = node.state
        if sample is not None:
            age_s = self._update(node, sample, now_s)
            node.add_state_change(before, end_s)
            return node.status(sample, age_s, is_current=True)
        age_s = None if node.received_s is None else max(0.0, now_s - node.received_s)
        node_interval_s = max(node.info.interval_s, self._interval_s)
        shown = None
        if node.problem or (age_s is not None and age_s > GONE_AFTER * node_interval_s):
            node.state, node.reason = State.GONE, node.problem or "it is not sending samples"
        elif age_s is not None and node_interval_s > self._interval_s:
            shown, age_s = node.last_sample, None
        node.add_state_change(before, end_s)
        return node.status(shown, age_s, is_current=False)

    @staticmethod
    def _update(node: _Node, sample: Sample, now_s: float) -> float | None:
        """Update a node; return the time since Cassandra last answered (None if it is answering or never answered)."""
        node.last_sample = sample
        node.state, node.reason = state_of(sample)
        if node.state is not State.SILENT:
            node.answered_s = now_s
            return None
        return None if node.answered_s is None else now_s - node.answered_s

    def _take_events(self) -> tuple[ClusterEvent, ...]:
        events = [event for node in self._nodes.values() for event in node.events]
        for node in self._nodes.values():
            node.events = []
        return tuple(sorted(events, key=lambda event: event.time_s))


def _with_last_gauges(sample: Sample | None) -> Sample | None:
    """Return the sample with the last known gauges from sources that do not report on every tick."""
    last_known = {} if sample is None else sample.last_known
    gauges = {series: value for series, value in last_known.items() if isinstance(value, float)}
    return replace(sample, values={**gauges, **sample.values}) if sample and gauges else sample

"""Samples of many nodes, as they arrive, put together tick by tick.

A frame is about one interval of the grid. In it is what had arrived when it was closed, and it says of how many nodes
that is: a node that is late, gone, or whose clock is off, is never waited for and never made up for.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from collector.catalogue import CATALOGUE
from collector.cluster import aggregation
from collector.cluster.grid import Grid
from collector.model.metric import Series
from collector.model.rates import Summary
from collector.model.sample import Sample
from collector.model.snapshot import Tick
from collector.printable import one_line
from exporters.line.table_rows import joint_tables, tables
from exporters.line.view import running
from exporters.live.frame import ALL, ClusterEvent, Frame, NodeFrame, State
from exporters.live.live_columns import EVERY, NOTHING, SUMMED, Cells, cells_of, is_whole
from exporters.live.sanitise import LATEST_S, LONGEST_NAME, MOST_EVENTS, sanitised, state_of, told_of

# Of the last samples the one that was fastest on its way tells how far off a node's clock is.
DELAYS = 5
EARLY = 0.1
MOST_TABLES = 60
# So many intervals a node may be silent before it counts as gone.
PATIENCE = 5
MERGED_LATER = 16


@dataclass(frozen=True)
class NodeInfo:
    """What is known of a node beside its samples.

    local       whether only local reads and writes are known of it: it is asked through nodetool.
    interval_s  between two of its samples.
    machine     the machine it runs on, and `network` which of that machine's; "" where that is not known.
    disk        the disk and the `interface` that it watches; "" where that is not known.
    """

    cluster: str = ""
    place: str = ""
    local: bool = False
    interval_s: float = 0.0
    machine: str = ""
    network: str = ""
    disk: str = ""
    interface: str = ""


class _Node:
    """What has been heard of one node."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.known = NodeInfo()
        self.bins: dict[int, list[Sample]] = {}
        self.delays: deque[float] = deque(maxlen=DELAYS)
        self.heard_s: float | None = None
        self.answered_s: float | None = None
        self.problem = ""
        self.state = State.NEW
        self.why = ""
        self.events: list[ClusterEvent] = []
        self.cells: Cells = NOTHING
        self.twin = ""
        self._summed: frozenset[Series] = frozenset()

    @property
    def placement(self) -> aggregation.Placement:
        """Where it runs."""
        return aggregation.Placement(self.known.machine, self.known.network, self.known.disk, self.known.interface)

    def lacking(self, sample: Sample) -> frozenset[Series]:
        """Return the gauges that add up across nodes and that the node reported before, but not in this sample."""
        now = {series for series in sample.values if series[0] in SUMMED}
        before = self._summed
        self._summed = before | now
        return before - now if self.state in (State.UP, State.CHANGING) else frozenset()


class FrameAssembler:
    """Takes samples and failures of nodes, each by the key it was met under, and closes frames."""

    def __init__(self, interval_s: float) -> None:
        self.grid = Grid(interval_s)
        self._interval_s = interval_s
        self._nodes: dict[str, _Node] = {}
        self._closed = -(1 << 62)
        self._open = 0
        self._tables: int | None = None
        self._names = EVERY

    @property
    def keys(self) -> Sequence[str]:
        """The nodes' keys, in the order of frames' `nodes`."""
        return list(self._nodes)

    def meet(self, key: str, name: str) -> None:
        """Expect a node; `name` is what it is called until it says so itself."""
        self._nodes.setdefault(key, _Node(name))

    def want(self, names: frozenset[str], tables: int | None) -> None:
        """Have frames tell of columns with these names, and of tables: of the node with this place, of ALL, or none."""
        self._names, self._tables = names, tables

    def know(self, key: str, known: NodeInfo) -> None:
        """Take what is known of a node."""
        node = self._nodes[key]
        node.known = replace(
            known, cluster=one_line(known.cluster)[:LONGEST_NAME], place=one_line(known.place)[:LONGEST_NAME]
        )

    def heard(self, key: str, sample: Sample, now_s: float) -> None:
        """Take a sample that arrived at `now_s`, wall time."""
        if not 0 <= sample.tick.time_s <= LATEST_S:
            self.failed(key, "its clock tells a time that cannot be", now_s)
            return
        node = self._nodes[key]
        node.problem, node.heard_s = "", now_s
        node.name = one_line(sample.node)[:LONGEST_NAME] or node.name
        node.delays.append(now_s - sample.tick.time_s)
        place = self._place(node, sample)
        if not is_whole(node.cells):
            # Slow answers must not keep a node out for ever: its first one counts in the next frame if it is late.
            place = max(place, self._closed + 1)
        if place > self._closed and len(node.bins) < MERGED_LATER:
            held = node.bins.setdefault(place, [])
            if len(held) < MERGED_LATER * DELAYS:
                held.append(sanitised(sample))
        node.events += [told for event in sample.events[:MOST_EVENTS] if (told := told_of(node.name, event, sample))]
        del node.events[:-MOST_EVENTS]

    def found(self, key: str, sample: Sample, now_s: float) -> None:
        """Take the last sample there was when a node was first asked: for the first frame, not to wait for a tick."""
        node = self._nodes[key]
        pace_s = node.known.interval_s or self._interval_s
        if abs(now_s - sample.tick.time_s) <= PATIENCE * pace_s:
            node.name, node.heard_s, node.problem = one_line(sample.node)[:LONGEST_NAME] or node.name, now_s, ""
            node.bins.setdefault(self._open, []).append(sanitised(sample))

    def known(self, key: str) -> NodeInfo:
        """Return what is known of a node beside its samples."""
        return self._nodes[key].known

    def failed(self, key: str, why: str, now_s: float) -> None:
        """Take note that a node, or what watches it, does not answer."""
        node = self._nodes[key]
        node.problem = one_line(why)
        if node.heard_s is None:
            node.state = State.GONE

    def _place(self, node: _Node, sample: Sample) -> int:
        """Return the interval that a sample tells of, by the clock here."""
        step_s = self._interval_s
        off = round((min(node.delays) - EARLY * step_s) / step_s) * step_s
        covered_s = min(node.known.interval_s or step_s, step_s)
        place = self.grid.index_of(sample.tick.time_s + off, covered_s)
        return self._closed if place is None else place

    def is_complete(self, place: int, *, first: bool = False) -> bool:
        """Return whether every node that is there has told of an interval; for the `first` nobody is known to be."""
        self._open = place
        there = (node for node in self._nodes.values() if not node.problem and (first or node.state is not State.NEW))
        return all(place in node.bins for node in there)

    def begin_anew(self, place: int) -> None:
        """Go on with an interval that was before: the clock here was set back."""
        self._closed = place - 1
        for node in self._nodes.values():
            node.bins.clear()
            node.delays.clear()

    def close(self, place: int, now_s: float) -> Frame:
        """Return what there is of an interval; what arrives later of it is not counted."""
        self._closed = place
        end_s = self.grid.end_of(place)
        samples = [self._taken(node, place) for node in self._nodes.values()]
        self._tell_twins()
        rows = [
            self._row(node, sample, now_s, end_s) for node, sample in zip(self._nodes.values(), samples, strict=True)
        ]
        joined = [
            (node, each) for node, each in zip(self._nodes.values(), samples, strict=True) if each and not node.twin
        ]
        whole, counted, merged = self._cluster(joined, Tick(end_s))
        names = {node.known.cluster for node in self._nodes.values() if node.known.cluster}
        told, ran = self._details(samples, whole)
        return Frame(
            end_s,
            self._interval_s,
            next(iter(names)) if len(names) == 1 else "",
            tuple(rows),
            merged,
            counted,
            self._events(),
            told,
            ran,
        )

    def _taken(self, node: _Node, place: int) -> Sample | None:
        """Return what a node did in an interval; what it told of those before came too late."""
        held = node.bins.pop(place, [])
        for late in [each for each in node.bins if each < place]:
            del node.bins[late]
        if len(held) < 2:
            return held[0] if held else None
        summary = Summary()
        for sample in held:
            summary.add(sample)
        whole = summary.sample()
        return None if whole is None else replace(whole, events=held[-1].events, last_known=held[-1].last_known)

    def _tell_twins(self) -> None:
        """Find nodes that are there twice, under two addresses: they count once."""
        first: dict[str, str] = {}
        for key, node in self._nodes.items():
            if node.heard_s is not None:
                other = first.setdefault(node.name, key)
                node.twin = "" if other == key else other

    def _row(self, node: _Node, sample: Sample | None, now_s: float, end_s: float) -> NodeFrame:
        before = node.state
        age_s = None
        if sample is not None:
            node.cells = cells_of(sample, local=node.known.local, names=self._names)
            node.state, node.why = state_of(sample)
            cells = node.cells
            if node.state is not State.SILENT:
                node.answered_s = now_s
            elif node.answered_s is not None:
                age_s = now_s - node.answered_s
        else:
            cells, age_s = NOTHING, None if node.heard_s is None else max(0.0, now_s - node.heard_s)
            pace_s = max(node.known.interval_s, self._interval_s)
            if node.problem or (age_s is not None and age_s > PATIENCE * pace_s):
                node.state, node.why = State.GONE, node.problem or "it sends nothing"
            elif age_s is not None and pace_s > self._interval_s:
                # It tells of longer intervals: what it said last is what is known, and no part of any sum.
                cells, age_s = node.cells, None
        why = f"is the node at {node.twin}, and counts once" if node.twin else node.why
        if before is not node.state and State.NEW not in (before, node.state):
            node.events.append(ClusterEvent(end_s, node.name, node.state.value, why or f"is {node.state.value} again"))
        return NodeFrame(node.name, node.state, cells, why, age_s, node.known.place)

    def _cluster(self, joined: Sequence[tuple[_Node, Sample]], tick: Tick) -> tuple[Sample, int, Cells]:
        """Return the nodes' samples as one, how many of them have a Cassandra that answers, and the cluster's row."""
        parts = [(node, _with_gauges(sample)) for node, sample in joined]
        lacking = frozenset[Series]().union(*(node.lacking(sample) for node, sample in parts))
        once = aggregation.counted_once(CATALOGUE, ((node.placement, sample) for node, sample in parts))
        whole = aggregation.merged(CATALOGUE, once, tick, lacking)
        counted = sum(node.state in (State.UP, State.CHANGING) for node, _ in joined)
        local = bool(joined) and all(node.known.local for node, _ in joined)
        return whole, counted, cells_of(whole, local=local, names=self._names)

    def _details(
        self, samples: Sequence[Sample | None], whole: Sample
    ) -> tuple[dict[int, Sequence[Mapping[str, Any]]], dict[int, Sequence[Mapping[str, Any]]]]:
        wanted = self._tables
        if wanted is None:
            return {}, {}
        if wanted == ALL:
            rows = joint_tables([sample for sample in samples if sample is not None])
            return {ALL: rows[:MOST_TABLES]}, {ALL: running(whole)[:MOST_TABLES]}
        sample = samples[wanted] if wanted < len(samples) else None
        if sample is None:
            return {}, {}
        return {wanted: tables(sample)[:MOST_TABLES]}, {wanted: running(sample)[:MOST_TABLES]}

    def _events(self) -> tuple[ClusterEvent, ...]:
        found = [told for node in self._nodes.values() for told in node.events]
        for node in self._nodes.values():
            node.events = []
        return tuple(sorted(found, key=lambda told: told.time_s))


def _with_gauges(sample: Sample) -> Sample:
    """Return the sample with the last known gauges of sources that answer at their own pace."""
    gauges = {series: value for series, value in sample.last_known.items() if isinstance(value, float)}
    return replace(sample, values={**gauges, **sample.values}) if gauges else sample

"""Garbage collection in the intervals in which a node did not answer."""

import re
from collections.abc import Iterable, Mapping

from collector.cluster.grid import SpanGrid
from collector.cluster.merge_job import NodeRun
from collector.model.sample import Rate
from collector.model.snapshot import Event

_GC_TIME = "cassandra_jvm_gc_seconds_total"
# The text of an event of the kind "gc" ends with the length of the pause.
_PAUSE = re.compile(r" (\d+) ms$")
_MS = 1000
Span = tuple[float, float]


def silent_gc_shares(grid: SpanGrid, node: NodeRun) -> dict[int, float]:
    """Return the share of the time in garbage collection, for the intervals without an answer in which it is known.

    The collectors' times at the next answer cover the time since the previous one. Before the last answer, they are
    complete; after it, only the pauses in the node's log are known.
    """
    spans = {index: _span(grid, index) for index in sorted(node.intervals)}
    silent = [index for index in spans if not node.answered(node.intervals[index].sample)]
    pauses = [pause for interval in node.intervals.values() for pause in _pauses(interval.sample.events)]
    shares = {index: _overlap_s(spans[index], pauses) / _length_s(spans[index]) for index in silent} if pauses else {}
    for index, (_, end_s) in spans.items():
        rates = _gc_rates(node, index)
        elapsed_s = max((rate.elapsed_s for rate in rates), default=0.0)
        for earlier in silent:
            begin_s, earlier_end_s = spans[earlier]
            # An interval is covered if its middle is.
            if end_s - elapsed_s < (begin_s + earlier_end_s) / 2 < end_s:
                shares[earlier] = sum(rate.per_s for rate in rates)
    return shares


def _span(grid: SpanGrid, index: int) -> Span:
    end_s = grid.end_of(index)
    return max(end_s - grid.interval_s, grid.spans[grid.span_of(index)][0]), end_s


def _length_s(span: Span) -> float:
    return span[1] - span[0]


def _gc_rates(node: NodeRun, index: int) -> list[Rate]:
    values: Mapping[tuple[str, ...], object] = node.intervals[index].sample.values
    return [rate for series, rate in values.items() if series[0] == _GC_TIME and isinstance(rate, Rate)]


def _pauses(events: Iterable[Event]) -> list[Span]:
    """Return the beginnings and ends of the pauses in a node's log."""
    pauses = []
    for event in events:
        match = _PAUSE.search(event.text) if event.kind == "gc" else None
        if match and event.time_s is not None:
            pauses.append((event.time_s - int(match[1]) / _MS, event.time_s))
    return pauses


def _overlap_s(span: Span, pauses: Iterable[Span]) -> float:
    total_s = sum(max(min(span[1], end_s) - max(span[0], begin_s), 0.0) for begin_s, end_s in pauses)
    return min(total_s, _length_s(span))

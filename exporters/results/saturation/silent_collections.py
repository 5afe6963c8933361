"""Garbage collection in the intervals in which a node did not answer."""

from collections.abc import Iterable, Mapping

from collector.merge.grid import SpanGrid
from collector.merge.merge_job import NodeRun
from collector.model.sample import Rate
from collector.model.snapshot import Event
from collector.node.log.log_events import collection_s
from collector.node.metrics.jvm import counts_pauses

_GC_TIME = "cassandra_jvm_gc_seconds_total"
Span = tuple[float, float]


def silent_gc_shares(grid: SpanGrid, node: NodeRun) -> dict[int, float]:
    """Return the share of the time in garbage collection pauses, for each interval without an answer where it is known.

    The collectors' times at the next answer cover the time since the previous one. Before the last answer, they are
    complete; after it, only the collections in the node's log are known.
    """
    spans = {index: _span(grid, index) for index in sorted(node.intervals)}
    silent = [index for index in spans if not node.answered(node.intervals[index].sample)]
    logged = [span for interval in node.intervals.values() for span in _collections(interval.sample.events)]
    shares = {index: _overlap_s(spans[index], logged) / _length_s(spans[index]) for index in silent} if logged else {}
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
    return [
        rate
        for series, rate in values.items()
        if series[0] == _GC_TIME and isinstance(rate, Rate) and counts_pauses(series)
    ]


def _collections(events: Iterable[Event]) -> list[Span]:
    """Return the beginnings and ends of the collections in a node's log."""
    durations = ((event.time_s, collection_s(event.kind, event.text)) for event in events)
    return [(end_s - length_s, end_s) for end_s, length_s in durations if end_s is not None and length_s is not None]


def _overlap_s(span: Span, collections: Iterable[Span]) -> float:
    total_s = sum(max(min(span[1], end_s) - max(span[0], begin_s), 0.0) for begin_s, end_s in collections)
    return min(total_s, _length_s(span))

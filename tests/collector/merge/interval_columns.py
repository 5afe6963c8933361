"""Intervals of a node as arrays, as the merge returns them."""

from collections.abc import Mapping

import numpy as np

from collector.merge.grid import Grid, NodeInterval
from collector.merge.merge_job import NodeRun
from collector.merge.node_columns import IntervalSums, NodeColumns
from collector.model.histogram import Buckets
from collector.model.snapshot import Rate
from collector.node.catalogue import CATALOGUE
from collector.recording.header import Header


def columns_of(node: str, head: Header, grid: Grid, intervals: Mapping[int, NodeInterval]) -> NodeColumns:
    sums, height, samples = IntervalSums(), len(intervals), [interval.sample for interval in intervals.values()]
    elapsed = {
        source: np.asarray([sample.elapsed_s.get(source, 0.0) for sample in samples], np.float64)
        for source in {source: None for sample in samples for source in sample.elapsed_s}
    }
    for row, sample in enumerate(samples):
        for series, value in sample.values.items():
            if isinstance(value, Rate):
                increase, elapsed_s = sums.counters.setdefault(series, (np.zeros(height), np.zeros(height)))
                increase[row], elapsed_s[row] = value[:2]
            elif isinstance(value, int | float):
                known, total, lowest, highest = sums.gauges.setdefault(
                    series, (np.zeros(height, np.int64), np.zeros(height), np.zeros(height), np.zeros(height))
                )
                known[row], total[row] = 1, value
                lowest[row], highest[row] = sample.spread.get(series, (value, value))
            elif isinstance(value, Buckets):
                length = len(value.counts)
                numbers, counts = sums.histograms.setdefault(series, {}).setdefault(
                    length, (np.zeros(height, np.int64), np.zeros((height, length), np.int64))
                )
                numbers[row], counts[row] = 1, value.counts
    return NodeColumns(
        node,
        head,
        grid,
        list(intervals),
        sums,
        {name: metric.unit for name, metric in {**CATALOGUE, **head.catalogue}.items()},
        elapsed,
        [{series: text for series, text in sample.values.items() if isinstance(text, str)} for sample in samples],
        [list(sample.events) for sample in samples],
        [sample.tick.late_s for sample in samples],
        [sample.tick.missed for sample in samples],
        [interval.ticks for interval in intervals.values()],
        unknown_s={index: interval.unknown_s for index, interval in intervals.items() if interval.unknown_s},
    )


def run_of(columns: NodeColumns, intervals: Mapping[int, NodeInterval]) -> NodeRun:
    """Return the run with exactly these intervals."""
    run = NodeRun(columns)
    vars(run)["intervals"] = intervals
    return run

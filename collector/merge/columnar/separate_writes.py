"""Separate conditional writes on all lines of a block; equivalent to `collector.node.metrics.separate_writes`."""

from collections import defaultdict

import numpy as np

from collector.merge.arrays import Bools, Floats
from collector.merge.columnar.series_rates import BlockRates
from collector.model.metric import Series
from collector.node.metrics.requests import CONDITIONAL_WRITE, ERRORS
from collector.node.metrics.separate_writes import NEEDS, READ, REQUESTS, VARIANT, WRITES


def separate_writes(rates: BlockRates) -> tuple[Floats, Floats] | None:
    """Return the increase and the elapsed time for each line, both 0 without a rate; None if no line has one.

    The columns of `rates` must include all series of the metrics in `separate_writes.NEEDS`.
    """
    columns: defaultdict[Series, list[int]] = defaultdict(list)
    for column, (_, series) in enumerate(rates.keys):
        if series[0] in NEEDS:
            columns[series].append(column)

    def increase(metric: str, operation: str) -> Floats:
        """Return a counter's increase for each line; 0 if it is unknown."""
        selected = columns[metric, operation]
        counted: Floats = np.where(rates.valid[:, selected], rates.increase[:, selected], 0.0).sum(axis=1)
        return counted

    valid = rates.valid[:, columns[WRITES]]
    if not valid.any():
        return None
    writes = increase(REQUESTS, CONDITIONAL_WRITE)
    failed = sum(increase(metric, CONDITIONAL_WRITE) for metric in ERRORS.values())
    unavailable = increase(ERRORS["unavailables"], CONDITIONAL_WRITE) - increase(ERRORS["unavailables"], READ)
    before_reads = np.maximum(np.maximum(unavailable, writes - increase(REQUESTS, READ)), 0.0)
    is_v2: Bools = (rates.known[:, columns[VARIANT]] & (rates.values[:, columns[VARIANT]] == 1)).any(axis=1)
    separate = np.where(is_v2, writes, np.minimum(np.minimum(writes, failed), before_reads))
    return separate, np.where(valid, rates.elapsed[:, columns[WRITES]], 0.0).sum(axis=1)

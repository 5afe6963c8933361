"""Conditional writes that are in no other operation, so that the total of all operations contains each once.

With Paxos v2, these are all of them. With v1, the read of a conditional write is among the reads, unless the write
failed earlier. Cassandra does not count that; at least these did: those for which too few replicas were up, and the
failed ones by which the conditional writes outnumber the reads.

The variant belongs to a node and may change at any time, so the number is that of a node in one tick, and is summed
like any other counter.
"""

from collections.abc import Mapping
from dataclasses import replace

from collector.model.metric import Series
from collector.model.snapshot import Derived, Rate, Sample
from collector.node.metrics.requests import CONDITIONAL_WRITE, ERRORS, PAXOS_V2, REQUESTS

READ = "Read"
SEPARATE_WRITE = "separate CASWrite"
"""The label `operation` of these conditional writes."""
WRITES: Series = (REQUESTS, CONDITIONAL_WRITE)
SEPARATE_WRITES: Series = (REQUESTS, SEPARATE_WRITE)
VARIANT: Series = (PAXOS_V2.metric.name,)
NEEDS = frozenset((REQUESTS, *VARIANT, *ERRORS.values()))
"""The metrics from which the number is computed."""


def with_separate_writes(sample: Sample) -> Sample:
    """Return a node's sample of one tick with the rate of these writes, if that of all conditional writes is known."""
    writes = sample.values.get(WRITES)
    if not isinstance(writes, Rate):
        return sample
    separate = Rate(_separate(sample.values, writes.increase), writes.elapsed_s)
    return replace(sample, values={**sample.values, SEPARATE_WRITES: separate})


def _separate(values: Mapping[Series, Derived], writes: float) -> float:
    if values.get(VARIANT) == 1:
        return writes
    failed = sum(_increase(values, metric, CONDITIONAL_WRITE) for metric in ERRORS.values())
    if not failed:
        # The numbers of reads and writes may differ by those in progress.
        return 0.0
    unavailable, unavailable_reads = (
        _increase(values, ERRORS["unavailables"], operation) for operation in (CONDITIONAL_WRITE, READ)
    )
    surplus = writes - _increase(values, REQUESTS, READ)
    return min(writes, failed, max(unavailable - unavailable_reads, surplus, 0.0))


def _increase(values: Mapping[Series, Derived], metric: str, operation: str) -> float:
    rate = values.get((metric, operation))
    return rate.increase if isinstance(rate, Rate) else 0.0

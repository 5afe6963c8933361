"""The table with most of a node's local operations."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from collector.model.sample import Rate, Sample
from collector.node.jolokia.table_budget import OTHERS
from collector.node.metrics.tables import OPERATIONS

TABLE_OPERATIONS = OPERATIONS.metric.name
"""The metric that `table_operations` needs."""
Operations = Mapping[tuple[str, str], float]
"""The number of local reads and writes in one interval, by keyspace and table."""
MIN_SHARE = 0.8
# Operations of tables that are not read are computed from differences between counters that are read at slightly
# different times, so a smaller share may be an error.
_MIN_SHARE_OF_OTHERS = 0.01


@dataclass(frozen=True)
class HotTable:
    """A table, and its share of the local reads and writes on all recorded tables."""

    keyspace: str
    table: str
    share: float


def table_operations(sample: Sample) -> Operations:
    """Return the operations on the tables that had any."""
    operations: dict[tuple[str, str], float] = {}
    for series, value in sample.values.items():
        if series[0] == TABLE_OPERATIONS and len(series) == 4 and isinstance(value, Rate) and value.increase:
            table = series[1], series[2]
            operations[table] = operations.get(table, 0.0) + value.increase
    return operations


def hot_table(intervals: Iterable[Operations]) -> HotTable | None:
    """Return the table with at least MIN_SHARE of the operations; None if there is none, or only one table has any."""
    totals: dict[tuple[str, str], float] = {}
    for operations in intervals:
        for table, count in operations.items():
            totals[table] = totals.get(table, 0.0) + count
    total = sum(totals.values())
    shares = {table: count / total for table, count in totals.items() if count}
    active = [table for table, share in shares.items() if table[1] != OTHERS or share >= _MIN_SHARE_OF_OTHERS]
    hottest = max(shares, key=lambda table: shares[table], default=None)
    if hottest is None or hottest[1] == OTHERS or len(active) < 2 or shares[hottest] < MIN_SHARE:
        return None
    return HotTable(*hottest, shares[hottest])

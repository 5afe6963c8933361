"""A node's local operations: sums of values in `tablestats`. No nodetool report counts coordinated requests."""

from collector.model.metric import Kind, Metric, Series, Values
from collector.node.metrics.tables import KEYSPACE_OPERATIONS, KEYSPACE_SECONDS, is_system_keyspace

OPERATIONS = Metric(
    "cassandra_local_operations_total",
    Kind.COUNTER,
    "1",
    "Number of local operations on all keyspaces except system keyspaces (only with nodetool).",
    ("operation",),
)
SECONDS = Metric(
    "cassandra_local_operation_seconds_total",
    Kind.COUNTER,
    "seconds",
    "Time spent on local operations on all keyspaces except system keyspaces, in seconds (only with nodetool).",
    ("operation",),
    scale=1e-6,
)
METRICS = (OPERATIONS, SECONDS)
_SUM_OF = {KEYSPACE_OPERATIONS: OPERATIONS.name, KEYSPACE_SECONDS: SECONDS.name}


def sums(values: Values) -> Values:
    """Return the sums of the keyspaces' counters for each operation, leaving out system keyspaces."""
    totals: dict[Series, int] = {}
    for (name, *labels), value in values.items():
        if name in _SUM_OF and isinstance(value, int) and not is_system_keyspace(labels[0]):
            series = (_SUM_OF[name], labels[1])
            totals[series] = totals.get(series, 0) + value
    return dict(totals)

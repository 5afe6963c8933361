"""What `tablestats` adds up to: the local operations of a node, as nodetool does not tell what it coordinated."""

from collector.cassandra.tables import is_system_keyspace
from collector.model.metric import Kind, Metric, Series, Values

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
_OF = {
    "cassandra_keyspace_operations_total": OPERATIONS.name,
    "cassandra_keyspace_operation_seconds_total": SECONDS.name,
}


def sums(values: Values) -> Values:
    """Return the counters of all keyspaces together, given those of every one."""
    found: dict[Series, int] = {}
    for (name, *labels), value in values.items():
        if name in _OF and isinstance(value, int) and not is_system_keyspace(labels[0]):
            series = (_OF[name], labels[1])
            found[series] = found.get(series, 0) + value
    return dict(found)

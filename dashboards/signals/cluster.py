"""The nodes as members of the cluster."""

from dashboards.expression import Level
from dashboards.signals.signal import Signal, Unit

SIGNALS = (
    Signal(
        "nodes_down",
        "Nodes that others call down",
        Level("cassandra_endpoints_down"),
        Unit.COUNT,
        "Nodes that the failure detector of some node calls down: one that was removed for good, for three days more; "
        "those that ought to be there and are not are the ones that cannot be reached.",
    ),
    Signal(
        "nodes_up",
        "Nodes that others call up",
        Level("cassandra_endpoints_up", across="min"),
        Unit.COUNT,
        "Nodes that the failure detectors call up, by the node that sees the fewest.",
    ),
    Signal(
        "nodes_unreachable",
        "Nodes that cannot be reached",
        Level("cassandra_endpoints_unreachable"),
        Unit.COUNT,
        "Nodes that ought to be there, and that some node cannot reach.",
    ),
    Signal(
        "started",
        "Start of Cassandra",
        Level("cassandra_jvm_start_time_seconds"),
        Unit.SECONDS,
        "When the node's JVM started, in seconds since the epoch.",
    ),
)

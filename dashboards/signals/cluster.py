"""The nodes as members of the cluster."""

from dashboards.expression import Gauge
from dashboards.signals.signal import Signal, Unit

SIGNALS = (
    Signal(
        "nodes_up",
        "Nodes up",
        Gauge("cassandra_endpoints_up"),
        Unit.COUNT,
        "Nodes that the failure detectors call up, by the node that sees the fewest.",
        low_is_worse=True,
    ),
    Signal(
        "nodes_unreachable",
        "Unreachable nodes",
        Gauge("cassandra_endpoints_unreachable"),
        Unit.COUNT,
        "Nodes that ought to be there, and that some node cannot reach.",
    ),
    Signal(
        "native_running",
        "Native transport running",
        Gauge("cassandra_native_transport_running"),
        Unit.COUNT,
        "1 where the native transport is on, 0 where it is off: before a node has joined, or because somebody or a "
        "failing disk stopped it.",
        absent="Absent where nodetool is asked instead of Jolokia.",
        low_is_worse=True,
    ),
    Signal(
        "started",
        "Cassandra start time",
        Gauge("cassandra_jvm_start_time_seconds"),
        Unit.SECONDS,
        "When the node's JVM started, in seconds since the epoch.",
    ),
)

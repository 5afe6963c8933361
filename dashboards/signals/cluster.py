"""Signals for cluster membership, and for the nodes' native transport and start time."""

from dashboards.expression import Gauge
from dashboards.signals.signal import Signal, Unit

SIGNALS = (
    Signal(
        "nodes_up",
        "Nodes up",
        Gauge("cassandra_endpoints_up"),
        Unit.COUNT,
        "Nodes that the failure detector considers up, as seen by the node that sees the fewest.",
        low_is_worse=True,
    ),
    Signal(
        "nodes_unreachable",
        "Unreachable nodes",
        Gauge("cassandra_endpoints_unreachable"),
        Unit.COUNT,
        "Cluster members that cannot be reached, as seen by the node that reaches the fewest.",
    ),
    Signal(
        "native_running",
        "Native transport running",
        Gauge("cassandra_native_transport_running"),
        Unit.COUNT,
        "1 while the native transport accepts clients, 0 while it is off: before a node has joined, after "
        "`nodetool disablebinary`, or after a disk failure.",
        absent="Absent for a node that is read through nodetool.",
        low_is_worse=True,
    ),
    Signal(
        "started",
        "Cassandra start time",
        Gauge("cassandra_jvm_start_time_seconds"),
        Unit.SECONDS,
        "Start time of the node's JVM, in seconds since the epoch.",
    ),
)

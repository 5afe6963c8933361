"""The node as a member of its cluster: location, version, state, load, exceptions and view of the other nodes."""

from collections.abc import Mapping
from typing import Any

from collector.model.mbean import METRICS, Many, counter, gauge, size, text
from collector.model.metric import Aggregation, ScrapeInterval

_STORAGE = METRICS + "type=Storage,name="
SERVICE = "org.apache.cassandra.db:type=StorageService"
_SNITCH = "org.apache.cassandra.db:type=EndpointSnitchInfo"
_DETECTOR = "org.apache.cassandra.net:type=FailureDetector"


def members(response: Mapping[str, Any]) -> frozenset[str]:
    """Return the addresses that a response lists as live or unreachable; none if either list is missing."""
    value = response.get("value")
    lists = [value.get(name) if isinstance(value, dict) else None for name in ("LiveNodes", "UnreachableNodes")]
    if not all(isinstance(addresses, list) for addresses in lists):
        return frozenset()
    return frozenset(address for addresses in lists for address in addresses or () if isinstance(address, str))


def _count(endpoints: Any) -> Many:
    return [((), len(endpoints))] if isinstance(endpoints, list) else []


SCHEMA_VERSION = text(
    "cassandra_schema_version",
    "Schema version of this node.",
    SERVICE,
    "SchemaVersion",
    scrape_interval=ScrapeInterval.TICK,
)

BEANS = (
    SCHEMA_VERSION,
    text("cassandra_release_version", "Release version of Cassandra.", SERVICE, "ReleaseVersion"),
    text("cassandra_cluster_name", "Name of the cluster.", SERVICE, "ClusterName"),
    text("cassandra_datacenter", "Data centre of the node.", _SNITCH, "Datacenter"),
    text("cassandra_rack", "Rack of the node.", _SNITCH, "Rack"),
    text(
        "cassandra_operation_mode",
        "Operation mode of the node, such as NORMAL.",
        SERVICE,
        "OperationMode",
        scrape_interval=ScrapeInterval.TICK,
    ),
    gauge(
        "cassandra_native_transport_running",
        "Whether the native transport is running: 1 or 0.",
        SERVICE,
        "NativeTransportRunning",
        many=lambda value: [((), int(value))] if isinstance(value, bool) else [],
        across=Aggregation.MIN,
    ),
    size("cassandra_load_bytes", "Size of the data on disk, in bytes.", _STORAGE + "Load", "Count"),
    counter("cassandra_exceptions_total", "Number of uncaught exceptions.", _STORAGE + "Exceptions"),
    gauge(
        "cassandra_endpoints_live",
        "Number of nodes that this node sees as live, including itself.",
        SERVICE,
        "LiveNodes",
        many=_count,
        across=Aggregation.MIN,
    ),
    gauge(
        "cassandra_endpoints_unreachable",
        "Number of nodes that this node cannot reach.",
        SERVICE,
        "UnreachableNodes",
        many=_count,
        across=Aggregation.MAX,
    ),
    gauge(
        "cassandra_endpoints_up",
        "Number of nodes that the failure detector marks as up.",
        _DETECTOR,
        "UpEndpointCount",
        across=Aggregation.MIN,
    ),
    gauge(
        "cassandra_endpoints_down",
        "Number of nodes that the failure detector marks as down.",
        _DETECTOR,
        "DownEndpointCount",
        across=Aggregation.MAX,
    ),
)

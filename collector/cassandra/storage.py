"""The node as a member of its cluster: load, exceptions, version, state, and which peers it sees."""

from collections.abc import Mapping
from typing import Any

from collector.jolokia.mbean import METRICS, Many, counter, gauge, text
from collector.model.metric import Aggregation, ScrapeInterval

_STORAGE = METRICS + "type=Storage,name="
SERVICE = "org.apache.cassandra.db:type=StorageService"
_SNITCH = "org.apache.cassandra.db:type=EndpointSnitchInfo"
_DETECTOR = "org.apache.cassandra.net:type=FailureDetector"


def members(answer: Mapping[str, Any]) -> frozenset[str]:
    """Return the addresses of all nodes, live or not, that an answer names; empty where it lacks either list."""
    value = answer.get("value")
    lists = [value.get(name) if isinstance(value, dict) else None for name in ("LiveNodes", "UnreachableNodes")]
    if not all(isinstance(addresses, list) for addresses in lists):
        return frozenset()
    return frozenset(address for addresses in lists for address in addresses or () if isinstance(address, str))


def _number(endpoints: Any) -> Many:
    return [((), len(endpoints))] if isinstance(endpoints, list) else []


def _truth(answer: Any) -> Many:
    return [((), int(answer))] if isinstance(answer, bool) else []


SCHEMA_VERSION = text(
    "cassandra_schema_version",
    "The schema as this node knows it.",
    SERVICE,
    "SchemaVersion",
    scrape_interval=ScrapeInterval.TICK,
)

BEANS = (
    SCHEMA_VERSION,
    text("cassandra_release_version", "Cassandra's version.", SERVICE, "ReleaseVersion"),
    text("cassandra_cluster_name", "The cluster's name.", SERVICE, "ClusterName"),
    text("cassandra_datacenter", "The data centre that the node is in.", _SNITCH, "Datacenter"),
    text("cassandra_rack", "The rack that it is in.", _SNITCH, "Rack"),
    text(
        "cassandra_operation_mode",
        "What the node is doing, such as NORMAL.",
        SERVICE,
        "OperationMode",
        scrape_interval=ScrapeInterval.TICK,
    ),
    gauge(
        "cassandra_native_transport_running",
        "Whether clients can connect: 1, or 0 when the native transport is off.",
        SERVICE,
        "NativeTransportRunning",
        many=_truth,
        across=Aggregation.MIN,
    ),
    gauge(
        "cassandra_load_bytes",
        "Size of the data on disk.",
        _STORAGE + "Load",
        "Count",
        unit="bytes",
        scrape_interval=ScrapeInterval.SLOW,
        across=Aggregation.SUM,
    ),
    counter("cassandra_exceptions_total", "Exceptions that nobody caught.", _STORAGE + "Exceptions"),
    gauge(
        "cassandra_endpoints_live",
        "Nodes that this one believes to be live, itself too.",
        SERVICE,
        "LiveNodes",
        many=_number,
        across=Aggregation.MIN,
    ),
    gauge(
        "cassandra_endpoints_unreachable",
        "Nodes that this one cannot reach.",
        SERVICE,
        "UnreachableNodes",
        many=_number,
        across=Aggregation.MAX,
    ),
    gauge(
        "cassandra_endpoints_up",
        "Nodes that the failure detector calls up.",
        _DETECTOR,
        "UpEndpointCount",
        across=Aggregation.MIN,
    ),
    gauge(
        "cassandra_endpoints_down",
        "Nodes that the failure detector calls down.",
        _DETECTOR,
        "DownEndpointCount",
        across=Aggregation.MAX,
    ),
)

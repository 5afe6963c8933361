"""Facts about a node from its JMX: address, data directories, process and peers."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from collector.model.mbean import MAX_NUMBER
from collector.node.host.cassandra_processes import NodeFacts
from collector.node.jolokia.client import Jolokia, JolokiaError
from collector.node.metrics.storage import SERVICE

RELEASE = json.dumps({"type": "read", "mbean": SERVICE, "attribute": "ReleaseVersion"})
"""The request for Cassandra's version."""


def read_facts(jolokia: Jolokia, timeout_s: float) -> NodeFacts:
    """Return the node's facts; a missing attribute leaves a fact empty. Raises JolokiaError as `Jolokia.post` does."""
    attributes = {
        SERVICE: ["LocalHostId", "EndpointToHostId", "AllDataFileLocations"],
        "java.lang:type=Runtime": ["Name", "StartTime"],
    }
    requests = [json.dumps({"type": "read", "mbean": bean, "attribute": names}) for bean, names in attributes.items()]
    service, runtime = (_mapping(response.get("value")) for response in jolokia.post(requests, timeout_s))
    local_id = service.get("LocalHostId")
    host_ids = _mapping(service.get("EndpointToHostId"))
    address = next((_address(endpoint) for endpoint, host_id in host_ids.items() if host_id == local_id), "")
    directories = service.get("AllDataFileLocations")
    start_ms = runtime.get("StartTime")
    started_ms = start_ms if isinstance(start_ms, int) and 0 <= start_ms <= MAX_NUMBER else 0
    return NodeFacts(
        address,
        tuple(Path(path) for path in directories if isinstance(path, str)) if isinstance(directories, list) else (),
        str(runtime.get("Name", "")),
        started_ms,
        peers=_addresses(host_ids),
    )


def read_peers(jolokia: Jolokia, timeout_s: float) -> tuple[str, ...]:
    """Return the sorted addresses of all nodes in the ring. Raises JolokiaError if there is no usable response."""
    request = json.dumps({"type": "read", "mbean": SERVICE, "attribute": "EndpointToHostId"})
    (response,) = jolokia.post([request], timeout_s)
    host_ids = response.get("value")
    if not isinstance(host_ids, dict) or not host_ids:
        raise JolokiaError(f"{jolokia.url}: the EndpointToHostId attribute is missing or malformed")
    return _addresses(host_ids)


def _addresses(endpoints: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({_address(endpoint) for endpoint in endpoints}))


def _address(endpoint: str) -> str:
    """Return an endpoint's address without the host name and slash that Java may put before it."""
    return endpoint.lstrip("/").rpartition("/")[2]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}

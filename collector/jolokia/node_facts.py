"""What a node reports about itself through Jolokia: address, data directories, process and peers."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from collector.cassandra.storage import SERVICE
from collector.host.cassandra_processes import NodeFacts
from collector.jolokia.client import Jolokia, JolokiaError
from collector.jolokia.mbean import LARGEST


def ask_facts(jolokia: Jolokia, timeout_s: float) -> NodeFacts:
    """Ask the node about itself; what it does not say stays empty. Raises JolokiaError as `Jolokia.ask`."""
    wanted = {
        SERVICE: ["LocalHostId", "EndpointToHostId", "AllDataFileLocations"],
        "java.lang:type=Runtime": ["Name", "StartTime"],
    }
    requests = [json.dumps({"type": "read", "mbean": bean, "attribute": names}) for bean, names in wanted.items()]
    service, runtime = (_mapping(answer.get("value")) for answer in jolokia.ask(requests, timeout_s))
    own = service.get("LocalHostId")
    hosts = _mapping(service.get("EndpointToHostId"))
    address = next((_address(endpoint) for endpoint, host in hosts.items() if host == own), "")
    places = service.get("AllDataFileLocations")
    start_ms = runtime.get("StartTime")
    started_ms = start_ms if isinstance(start_ms, int) and 0 <= start_ms <= LARGEST else 0
    return NodeFacts(
        address,
        tuple(Path(place) for place in places if isinstance(place, str)) if isinstance(places, list) else (),
        str(runtime.get("Name", "")),
        started_ms,
        peers=_addresses(hosts),
    )


def ask_peers(jolokia: Jolokia, timeout_s: float) -> tuple[str, ...]:
    """Ask the node for the addresses of its ring, sorted. Raises JolokiaError as `Jolokia.ask`."""
    request = json.dumps({"type": "read", "mbean": SERVICE, "attribute": "EndpointToHostId"})
    (answer,) = jolokia.ask([request], timeout_s)
    hosts = answer.get("value")
    if not isinstance(hosts, dict) or not hosts:
        raise JolokiaError(f"{jolokia.url}: no usable EndpointToHostId")
    return _addresses(hosts)


def _addresses(endpoints: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({_address(endpoint) for endpoint in endpoints}))


def _address(endpoint: str) -> str:
    """Return an endpoint's address; Java may write a name before it."""
    return endpoint.lstrip("/").rpartition("/")[2]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}

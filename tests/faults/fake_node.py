"""A small model of a Cassandra 5.0 node's MBeans, controlled by the test."""

import re
import threading
from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

METRICS = "org.apache.cassandra.metrics:"
SERVICE = "org.apache.cassandra.db:type=StorageService"
RUNTIME = "java.lang:type=Runtime"
ADDRESS = "192.0.2.7"
# Earlier than the start of any process on this machine, so that no process is mistaken for the node.
FIRST_START_MS = 1_000_000_000_000
# The number of operations before the first scrape. If an interval included them, the spike would be obvious.
PAST = 1_000_000_000
PAST_US = 400

Json = dict[str, Any]
Attributes = dict[str, Callable[[], Any]]
Override = Callable[[Json, Json], Json]
"""Takes a request and the correct response, and returns the response to send."""


def _offsets(number: int) -> list[int]:
    offsets = [1]
    while len(offsets) < number:
        offsets.append(max(offsets[-1] + 1, int(offsets[-1] * 1.2 + 0.5)))
    return offsets


OFFSETS_US = _offsets(127)


class Timer:
    """A latency timer: a count, a total time in microseconds, and the counts of 128 buckets."""

    def __init__(self) -> None:
        self.count = 0
        self.total_us = 0
        self.buckets = [0] * (len(OFFSETS_US) + 1)

    def add(self, number: int, latency_us: int) -> None:
        self.count += number
        self.total_us += number * latency_us
        self.buckets[bisect_left(OFFSETS_US, latency_us)] += number


class FakeNode:
    """A registry of MBeans. If set, `override` may replace any response."""

    def __init__(self) -> None:
        self.override: Override | None = None
        self.compactions: list[Json] = []
        self._lock = threading.RLock()
        self._start_ms = FIRST_START_MS
        self._schema = 1
        self._boot()
        self.add("Read", PAST, PAST_US)
        self.add("Write", PAST, PAST_US)

    def restart(self) -> None:
        """Restart with a new start time and with all counters at zero."""
        with self._lock:
            self._start_ms += 60_000
            self._boot()

    def reset(self) -> None:
        """Reset all counters to zero without a restart."""
        with self._lock:
            self._boot()

    def do_reads(self, number: int, latency_us: int = 500) -> None:
        self.add("Read", number, latency_us)

    def add(self, operation: str, number: int, latency_us: int, table: tuple[str, str] | None = None) -> None:
        """Coordinate `number` operations, and execute them locally if a table is given."""
        with self._lock:
            self._timers[f"ClientRequest {operation}"].add(number, latency_us)
            if table is not None:
                self._timers[f"{table[0]} {operation}"].add(number, latency_us)
                self._timers[f"{table[0]}.{table[1]} {operation}"].add(number, latency_us)

    def create_table(self, keyspace: str, table: str) -> None:
        with self._lock:
            self._schema += 1
            self._local(keyspace, f"type=Keyspace,keyspace={keyspace},name=")
            self._local(f"{keyspace}.{table}", f"type=Table,keyspace={keyspace},scope={table},name=")

    def drop_keyspace(self, keyspace: str) -> None:
        with self._lock:
            self._schema += 1
            for name in [name for name in self._beans if f"keyspace={keyspace}," in name]:
                del self._beans[name]

    def answer(self, request: Json) -> Json:
        with self._lock:
            answer = {**self._answer(request), "timestamp": 1_795_243_426}
            return self.override(request, answer) if self.override else answer

    def _boot(self) -> None:
        self._beans: dict[str, Attributes] = {}
        self._timers: dict[str, Timer] = {}
        for operation in ("Read", "Write", "RangeSlice"):
            self._timer(f"ClientRequest {operation}", f"type=ClientRequest,scope={operation},name=")
            for name in ("Timeouts", "Unavailables", "Failures"):
                self._bean(f"{METRICS}type=ClientRequest,scope={operation},name={name}", Count=0)
        self._bean(METRICS + "type=Compaction,name=PendingTasks", Value=0)
        self._bean(METRICS + "type=ThreadPools,path=request,scope=ReadStage,name=ActiveTasks", Value=0)
        self._bean(METRICS + "type=Cache,scope=KeyCache,name=Hits", Count=0)
        self._bean("org.apache.cassandra.db:type=CompactionManager", Compactions=lambda: self.compactions)
        self._bean("java.lang:type=Memory", HeapMemoryUsage={"used": 363253760, "max": 536870912})
        self._bean(RUNTIME, Name="4242@another-host", StartTime=lambda: self._start_ms)
        self._bean(
            SERVICE,
            LocalHostId="0f0f",
            EndpointToHostId={f"/{ADDRESS}": "0f0f", "/192.0.2.8": "1e1e"},
            AllDataFileLocations=["/var/lib/cassandra/data"],
            SchemaVersion=lambda: f"schema-{self._schema}",
            ReleaseVersion="5.0.6",
            ClusterName="Test Cluster",
            OperationMode="NORMAL",
            LiveNodes=[ADDRESS, "192.0.2.8"],
            UnreachableNodes=[],
        )
        self._bean("org.apache.cassandra.db:type=EndpointSnitchInfo", Datacenter="dc1", Rack="r1")

    def _local(self, key: str, prefix: str) -> None:
        for operation in ("Read", "Write", "Range"):
            self._timer(f"{key} {operation}", f"{prefix}{operation}")

    def _timer(self, key: str, prefix: str) -> None:
        self._timers[key] = timer = Timer()
        self._bean(
            f"{METRICS}{prefix}Latency", Count=lambda: timer.count, DurationUnit="microseconds", _values=timer.buckets
        )
        self._bean(f"{METRICS}{prefix}TotalLatency", Count=lambda: timer.total_us)

    def _bean(self, name: str, **attributes: Any) -> None:
        self._beans[canonical(name)] = {
            key: value if callable(value) else partial(_same, value) for key, value in attributes.items()
        }

    def _answer(self, request: Json) -> Json:
        if request["type"] == "search":
            return {"value": self._search(request["mbean"]), "status": 200}
        if request["mbean"].endswith(",*"):
            # No MBean of this node is read with others.
            return error(404, "javax.management.InstanceNotFoundException", request["mbean"])
        attributes = self._beans.get(canonical(request["mbean"]))
        if attributes is None:
            return error(404, "javax.management.InstanceNotFoundException", request["mbean"])
        if request["type"] == "exec":
            return _exec(request, attributes)
        return _read(request, attributes)

    def _search(self, pattern: str) -> list[str]:
        wanted = properties(pattern)
        return [
            name
            for name in self._beans
            if name.partition(":")[0] == pattern.partition(":")[0]
            and (keys := properties(name)).keys() == wanted.keys()
            and all(_fits(wanted[key], keys[key]) for key in wanted)
        ]


def _same(value: Any) -> Any:
    return value


def _exec(request: Json, attributes: Attributes) -> Json:
    if request["operation"] != "values()" or "_values" not in attributes:
        return error(400, "java.lang.IllegalArgumentException", f"No operation {request['operation']} found")
    return {"value": list(attributes["_values"]()), "status": 200}


def _read(request: Json, attributes: Attributes) -> Json:
    wanted = request.get("attribute", [key for key in attributes if key != "_values"])
    if isinstance(wanted, list):
        return {"value": {name: _attribute(name, attributes) for name in wanted}, "status": 200}
    if wanted not in attributes:
        return error(404, "javax.management.AttributeNotFoundException", f"No such attribute: {wanted}")
    return {"value": attributes[wanted](), "status": 200}


def _attribute(name: str, attributes: Attributes) -> Any:
    missing = f"ERROR: No such attribute: {name} (class javax.management.AttributeNotFoundException)"
    return attributes[name]() if name in attributes else missing


def error(status: int, kind: str, text: str) -> Json:
    """Return Jolokia's response to a request that fails."""
    return {"status": status, "error_type": kind, "error": f"{kind} : {text}"}


def properties(name: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in name.partition(":")[2].split(","))


def canonical(name: str) -> str:
    """Return an ObjectName with its keys sorted, as in Jolokia's responses."""
    ordered = sorted(properties(name).items())
    return f"{name.partition(':')[0]}:{','.join(f'{key}={value}' for key, value in ordered)}"


def _fits(pattern: str, value: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), value) is not None


def is_about(request: Mapping[str, Any], kind: str, fragment: str) -> bool:
    """Return whether a request has the type `kind` and an MBean name with all properties in `fragment`."""
    return request["type"] == kind and set(fragment.split(",")) <= set(request["mbean"].partition(":")[2].split(","))

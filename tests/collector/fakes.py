"""Fakes: a clock that tests control, Jolokia with a node's MBeans, and a full disk."""

import json
import resource
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from collector.node.jolokia.client import Jolokia, JolokiaError

NS = 1_000_000_000
NONE_SUCH = "javax.management.InstanceNotFoundException"


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Limit files to `size` bytes; as on a full disk, a write beyond the limit fails, even in the middle of a line."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@dataclass(frozen=True)
class Disturbance:
    """Disturbances during one sleep: oversleeping, a step of the wall clock, and time spent suspended."""

    longer_s: float = 0.0
    wall_step_s: float = 0.0
    suspended_s: float = 0.0


class FakeClock:
    """A wall clock and a monotonic clock that never advance on their own; both count whole nanoseconds."""

    def __init__(self, wall_s: float = 1_700_000_000.0, sleeps: Iterable[Disturbance] = ()) -> None:
        self._wall_ns = round(wall_s * NS)
        self._monotonic_ns = 5_000 * NS
        self._sleeps = iter(sleeps)
        self.slept: list[float] = []
        self._suspended_ns = 0

    def wall_s(self) -> float:
        return self._wall_ns / NS

    def monotonic_s(self) -> float:
        return self._monotonic_ns / NS

    def suspended_s(self) -> float:
        return self._suspended_ns / NS

    def sleep(self, seconds: float) -> None:
        disturbance = Disturbance()
        # A sleep of at most a microsecond only makes up for a rounding error, so it is not recorded.
        if seconds > 1e-6:
            self.slept.append(seconds)
            disturbance = next(self._sleeps, disturbance)
        self.busy(ceil((seconds + disturbance.longer_s) * NS) / NS)
        self.suspend(disturbance.suspended_s)
        self.step(disturbance.wall_step_s)

    def busy(self, seconds: float) -> None:
        """Advance both clocks."""
        self._wall_ns += round(seconds * NS)
        self._monotonic_ns += round(seconds * NS)

    def suspend(self, seconds: float) -> None:
        """Advance the clocks as if the machine were suspended."""
        self.busy(seconds)
        self._suspended_ns += round(seconds * NS)

    def step(self, seconds: float) -> None:
        self._wall_ns += round(seconds * NS)


Name = tuple[str, frozenset[str]]


def _parts(name: str) -> Name:
    """Return the domain and the properties of an ObjectName that contains no quoted commas."""
    domain, _, properties = name.partition(":")
    return domain, frozenset(properties.split(","))


def _canonical(name: str) -> str:
    """Return the name in Jolokia's form, with sorted properties."""
    domain, properties = _parts(name)
    return f"{domain}:{','.join(sorted(properties))}"


def _fits(pattern: Name, name: Name) -> bool:
    have = dict(part.split("=", 1) for part in name[1])
    want = dict(part.split("=", 1) for part in pattern[1])
    same_keys = pattern[0] == name[0] and want.keys() == have.keys()
    return same_keys and all(value in ("*", have[key]) for key, value in want.items())


@dataclass
class FakeJolokia(Jolokia):
    """Responds as Jolokia would; `beans` maps MBean names to attribute values and operation results.

    refusing    the reason for refusing searches, or "" to allow them.
    forbidding  the reason for refusing operations, or "" to allow them.
    finds       the names that every search returns; if None, each search returns the matching names.
    down        whether all requests fail.
    takes_s     the number of seconds that each bulk request takes on `clock`.
    meanwhile   a function called before each part of a bulk request is answered.
    """

    beans: dict[str, dict[str, Any]] = field(default_factory=dict)
    url: str = "http://node:8778/jolokia"
    down: bool = False
    refusing: str = ""
    forbidding: str = ""
    finds: list[str] | None = None
    clock: FakeClock | None = None
    takes_s: float = 0.0
    meanwhile: Callable[[], None] = lambda: None
    rounds: list[list[dict[str, Any]]] = field(default_factory=list)

    def post(self, requests: Sequence[str], timeout_s: float) -> list[dict[str, Any]]:
        del timeout_s
        if self.down:
            raise JolokiaError(f"{self.url}: Connection refused")
        if self.clock is not None:
            self.clock.busy(self.takes_s)
        decoded = [json.loads(request) for request in requests]
        self.rounds.append(decoded)
        index = {_parts(name): name for name in self.beans}
        return [self._answer(index, request) for request in decoded]

    def _answer(self, index: dict[Name, str], request: dict[str, Any]) -> dict[str, Any]:
        self.meanwhile()
        if request["type"] == "search":
            if self.refusing:
                return {"error": self.refusing, "error_type": "java.lang.SecurityException", "status": 403}
            pattern = _parts(request["mbean"])
            names = [_canonical(name) for parts, name in index.items() if _fits(pattern, parts)]
            return {"value": names if self.finds is None else self.finds, "status": 200}
        if request["type"] == "exec" and self.forbidding:
            return {"error": self.forbidding, "error_type": "java.lang.SecurityException", "status": 403}
        name = index.get(_parts(request["mbean"]))
        if name is None:
            return {"error": f"{NONE_SUCH} : {request['mbean']}", "error_type": NONE_SUCH, "status": 404}
        return {"value": self._value(self.beans[name], request), "status": 200}

    def _value(self, attributes: dict[str, Any], request: dict[str, Any]) -> Any:
        if request["type"] == "exec":
            return attributes.get(request["operation"])
        wanted = request["attribute"]
        if isinstance(wanted, list):
            return {name: self._attribute(attributes, name) for name in wanted}
        return self._attribute(attributes, wanted)

    def _attribute(self, attributes: dict[str, Any], name: str) -> Any:
        return attributes.get(name, f"ERROR: javax.management.AttributeNotFoundException : No such attribute: {name}")

    def searches(self) -> list[list[str]]:
        """Return the search patterns in each bulk request that contains searches."""
        rounds = [[request["mbean"] for request in sent if request["type"] == "search"] for sent in self.rounds]
        return [patterns for patterns in rounds if patterns]

    def last_read(self) -> list[str]:
        """Return the MBeans read by the last bulk request without searches."""
        rounds = [sent for sent in self.rounds if not any(request["type"] == "search" for request in sent)]
        return [request["mbean"] for request in rounds[-1]]

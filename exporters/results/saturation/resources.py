"""The resources that can limit a run, with the values beyond which they are saturated."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, median

Loads = Mapping[str, float]
"""The known measures of a node or client host in one interval, by name."""


@dataclass(frozen=True)
class Limit:
    """A value that a measure of a saturated resource reaches.

    measure  the name of the measure in `Loads`.
    bound    the value.
    form     formats the summary of the measure as text.
    summary  combines the values of several intervals.
    """

    measure: str
    bound: float
    form: str
    summary: Callable[[Iterable[float]], float] = median


@dataclass(frozen=True)
class Resource:
    """A resource.

    It is saturated in an interval if every known measure in `limits` reaches its limit, or if one in `alternatives`
    does. If neither is the case and the first measure is unknown, so is the state of the resource.

    of_nodes, of_clients  whether it is a resource of nodes and of client hosts.
    unknown_text          the statement of the report if its state is unknown on at least one host, for a resource that
                          often is; "" for a resource without which the result is undetermined.
    depends_on_tables     whether the table with most of the operations may be the cause of the saturation.
    """

    name: str
    limits: tuple[Limit, ...]
    alternatives: tuple[Limit, ...] = ()
    of_nodes: bool = True
    of_clients: bool = False
    unknown_text: str = ""
    depends_on_tables: bool = False

    @property
    def all_limits(self) -> tuple[Limit, ...]:
        return *self.limits, *self.alternatives

    def is_saturated(self, loads: Loads) -> bool | None:
        if any(loads[limit.measure] >= limit.bound for limit in self.alternatives if limit.measure in loads):
            return True
        if self.limits[0].measure not in loads:
            return None
        return all(loads[limit.measure] >= limit.bound for limit in self.limits if limit.measure in loads)


# Requests queue long before the last idle percent is used, because the load varies within an interval. The nodes' limit
# for the CPU is lower, because it also requires that tasks wait or that one node uses most of the CPU time.
_BUSY = 0.9
_WAITING = 0.2
_CPU = Limit("cpu_busy", 0.85, "{:.0%} of its processors busy")

UNAVAILABLE = Resource(
    "unavailable node",
    (
        Limit("unanswered", 1, "no answer in {:.0%} of the intervals", fmean),
        # A process that works is kept from answering by something else, such as garbage collection.
        Limit("process_idle", 1, "its process idle in {:.0%}", fmean),
    ),
)
NETWORK = Resource(
    "network",
    (Limit("network_used", _BUSY, "{:.0%} of the interface's capacity used"),),
    of_clients=True,
    unknown_text="the network's capacity is unknown on at least one host",
)
GENERATOR = Resource(
    "load generator",
    (Limit("generator_cpu", _BUSY, "{:.0%} of its processors busy"),),
    # More processors do not help a load generator whose work is done by one thread.
    (Limit("generator_thread", _BUSY, "{:.0%} of one processor used by its busiest thread"),),
    of_nodes=False,
    of_clients=True,
)
GC = Resource("garbage collection", (Limit("gc_share", 0.25, "{:.0%} of the time in pauses"),))
DISK = Resource(
    "disk",
    (
        Limit("disk_util", _BUSY, "{:.0%} utilisation"),
        # A disk that serves requests in parallel is not saturated at 100% utilisation.
        Limit("disk_await_ms", 5, "{:.1f} ms per request"),
        Limit("io_waiting", _WAITING, "tasks waiting {:.0%} of the time"),
    ),
    depends_on_tables=True,
)
HOT_NODE = Resource(
    "hot node", (Limit("cpu_ratio", 1.8, "{:.1f} times the mean CPU time of the nodes"), _CPU), depends_on_tables=True
)
CPU = Resource(
    "CPU", (_CPU, Limit("cpu_waiting", _WAITING, "tasks waiting {:.0%} of the time")), depends_on_tables=True
)
COMPACTION = Resource("compaction", (Limit("compactions_pending", 30, "{:.0f} pending compactions"),))

# During a collection, a node does not answer, and the others have more traffic if a node does not answer. Traffic uses
# the processors and disks of nodes and client hosts; none of them causes traffic by being busy.
RESOURCES = (GC, UNAVAILABLE, NETWORK, GENERATOR, DISK, HOT_NODE, CPU, COMPACTION)
"""All resources; those that cause the saturation of others come before them."""
QUEUED = "queued"
"""The number of requests that wait in thread pools: a symptom, from which no resource can be named."""


def is_unresponsive(loads: Loads) -> bool:
    """Return whether a node does not answer although its process works: something keeps it from answering."""
    return bool(loads.get("unanswered")) and loads.get("process_idle") == 0

"""The series of load generators on `/metrics`: operations, errors and latencies; docs/dashboards.md describes them."""

import gzip
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import Collector

from collector.load_results.client_result import NS_PER_S, ClientInterval
from collector.load_results.parsing import Labels
from exporters.metrics_page.metric_family import DEFAULT_S, GZIP_LEVEL, encodable

OPERATIONS, ERRORS = "casstat_load_operations", "casstat_load_errors"
DURATION = "casstat_load_operation_duration_seconds"
MALFORMED = "casstat_load_malformed_lines"
READ, WRITE = "Read", "Write"
"""The operations that have panels."""
RESPONSE, SERVICE = "response", "service"
_NAMES = {"read": READ, "write": WRITE}
_BOUNDS = [*map(str, DEFAULT_S), "+Inf"]


class Durations:
    """A histogram of latencies: the number of operations in each bucket, and the sum in seconds."""

    def __init__(self) -> None:
        self.counts = [0] * len(_BOUNDS)
        self.sum_s = 0.0

    def add(self, seconds: float, count: int = 1) -> None:
        self.counts[bisect_left(DEFAULT_S, seconds)] += count
        self.sum_s += seconds * count

    @property
    def total(self) -> int:
        return sum(self.counts)


class _Operation:
    """The counts of one operation of one client; `by_kind` has its latencies by RESPONSE and SERVICE."""

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter({"": 0})
        self.by_kind: dict[str, Durations] = {}

    def durations(self, kind: str) -> Durations:
        return self.by_kind.setdefault(kind, Durations())

    @property
    def completed(self) -> int:
        # Response and service times are those of the same operations.
        return max((durations.total for durations in self.by_kind.values()), default=0)

    @property
    def served_kind(self) -> str:
        """The kind of latency to serve; serving both would count each operation twice."""
        return RESPONSE if RESPONSE in self.by_kind else SERVICE


class _Client:
    """The counts of one client, with a bounded number of operations and kinds of errors."""

    def __init__(self) -> None:
        self.malformed = 0
        self.operations: dict[str, _Operation] = {}
        self._names, self._kinds = Labels(), Labels()

    def operation(self, name: str) -> _Operation:
        return self.operations.setdefault(self._names.of(_NAMES.get(name.lower(), name)), _Operation())

    def kind(self, text: str) -> str:
        return self._kinds.of(text)


class LoadSeries(Collector):
    """Counts the operations of clients; thread-safe."""

    def __init__(self, cluster: str) -> None:
        """Count operations on the cluster of this name."""
        self.registry = CollectorRegistry()
        self._cluster = cluster
        self._clients: dict[str, _Client] = {}
        self._lock = threading.Lock()
        self.registry.register(self)

    def begin(self, client: str, operations: Iterable[str] = ()) -> None:
        """Reset a client's counts to 0, and create the series of the given operations.

        Prometheus does not count increases that precede a series' first sample.
        """
        with self._lock:
            self._clients[client] = _Client()
            for name in operations:
                self._clients[client].operation(name).durations(RESPONSE)

    def completed(self, client: str, operation: str, response_s: float) -> None:
        """Count an operation that completed `response_s` after its intended start."""
        with self._lock:
            self._client(client).operation(operation).durations(RESPONSE).add(response_s)

    def failed(self, client: str, operation: str) -> None:
        with self._lock:
            self._client(client).operation(operation).errors[""] += 1

    def add(self, client: str, name: str, total: ClientInterval) -> None:
        """Add an operation's counts and latencies to those of a client."""
        with self._lock:
            counted = self._client(client)
            operation = counted.operation(name)
            for kind, latency in ((RESPONSE, total.response), (SERVICE, total.service)):
                for value_ns, count in latency.counts.items() if latency else ():
                    operation.durations(kind).add(value_ns / NS_PER_S, count)
            for error, count in total.errors.items():
                operation.errors[counted.kind(error)] += count

    def skip(self, client: str, malformed: int) -> None:
        """Count lines of a client's result that cannot be read."""
        with self._lock:
            self._client(client).malformed += malformed

    def metrics(self, *, openmetrics: bool, compressed: bool = False) -> bytes:
        page = (generate_openmetrics if openmetrics else generate_latest)(self.registry)
        return gzip.compress(page, GZIP_LEVEL) if compressed else page

    def describe(self) -> Iterable[Metric]:
        """Return no metrics: the registry has no others with which they could collide."""
        return []

    def collect(self) -> Iterator[Metric]:
        labels = ("cluster", "client", "operation")
        completed = CounterMetricFamily(OPERATIONS, "Operations that completed.", labels=labels)
        errors = CounterMetricFamily(ERRORS, "Operations that failed.", labels=(*labels, "error"))
        durations = HistogramMetricFamily(
            DURATION,
            "Latency of operations that completed: the response time is measured from the intended start, including "
            "the wait before sending, and the service time from the actual start.",
            labels=(*labels, "latency"),
        )
        malformed = CounterMetricFamily(MALFORMED, "Lines of the result that were skipped.", labels=labels[:2])
        with self._lock:
            for client, counted in self._clients.items():
                of_client = encodable(self._cluster), encodable(client)
                malformed.add_metric(of_client, counted.malformed)
                for name, operation in counted.operations.items():
                    values = *of_client, encodable(name)
                    completed.add_metric(values, operation.completed)
                    for error, count in operation.errors.items():
                        errors.add_metric((*values, encodable(error)), count)
                    kind = operation.served_kind
                    latency = operation.by_kind.get(kind, Durations())
                    buckets = list(zip(_BOUNDS, accumulate(latency.counts), strict=True))
                    durations.add_metric((*values, kind), buckets, latency.sum_s)
        yield from (completed, errors, durations, malformed)

    def _client(self, name: str) -> _Client:
        return self._clients.setdefault(name, _Client())

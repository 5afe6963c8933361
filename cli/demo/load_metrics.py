"""The load generator's Prometheus metrics: operations, errors and response times."""

from prometheus_client import CollectorRegistry, Counter, Histogram, start_http_server

from exporters.prometheus.upper_bounds import DEFAULT_S

CLIENT = "demo"
READ, WRITE = "Read", "Write"
_LABELS = ("cluster", "client", "operation")


class LoadMetrics:
    """Counts operations and measures response times with the client's clock; thread-safe."""

    def __init__(self, cluster: str) -> None:
        """Create the metrics, labelled with the cluster's name."""
        self.registry = CollectorRegistry()
        operations = Counter(
            "casstat_load_operations", "Operations acknowledged by the cluster.", _LABELS, registry=self.registry
        )
        errors = Counter("casstat_load_errors", "Operations that failed.", _LABELS, registry=self.registry)
        durations = Histogram(
            "casstat_load_operation_duration_seconds",
            "Response time of acknowledged operations, from the intended start, including the wait before sending.",
            _LABELS,
            registry=self.registry,
            buckets=DEFAULT_S,
        )
        # Create all series at zero, because Prometheus does not count increases that precede a series' first sample.
        self._operations = {operation: operations.labels(cluster, CLIENT, operation) for operation in (READ, WRITE)}
        self._errors = {operation: errors.labels(cluster, CLIENT, operation) for operation in (READ, WRITE)}
        self._durations = {operation: durations.labels(cluster, CLIENT, operation) for operation in (READ, WRITE)}

    def done(self, operation: str, seconds: float) -> None:
        """Count an operation acknowledged `seconds` after its intended start."""
        self._operations[operation].inc()
        self._durations[operation].observe(seconds)

    def failed(self, operation: str) -> None:
        """Count a failed operation."""
        self._errors[operation].inc()

    def serve(self, address: str) -> None:
        """Serve the metrics at HOST:PORT. Raises ValueError for a malformed address, OSError if it cannot be bound."""
        host, _, port = address.rpartition(":")
        start_http_server(int(port), host, self.registry)

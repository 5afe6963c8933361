"""What the load's clients see, for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Histogram, start_http_server

from exporters.prometheus.upper_bounds import DEFAULT_S

CLIENT = "demo"
READ, WRITE = "Read", "Write"
_LABELS = ("cluster", "client", "operation")


class LoadMetrics:
    """Counts operations by the client's own clock; any thread may tell of one."""

    def __init__(self, cluster: str) -> None:
        """Take the name of the cluster that is loaded."""
        self.registry = CollectorRegistry()
        operations = Counter(
            "casstat_load_operations", "Operations that the cluster acknowledged.", _LABELS, registry=self.registry
        )
        errors = Counter("casstat_load_errors", "Operations that failed.", _LABELS, registry=self.registry)
        durations = Histogram(
            "casstat_load_operation_duration_seconds",
            "How long those that were acknowledged took, from when they were due: waiting to be sent counts too.",
            _LABELS,
            registry=self.registry,
            buckets=DEFAULT_S,
        )
        # All of them are there from the first scrape on, so that nothing that is counted is missed.
        self._operations = {each: operations.labels(cluster, CLIENT, each) for each in (READ, WRITE)}
        self._errors = {each: errors.labels(cluster, CLIENT, each) for each in (READ, WRITE)}
        self._durations = {each: durations.labels(cluster, CLIENT, each) for each in (READ, WRITE)}

    def done(self, operation: str, seconds: float) -> None:
        """Count an operation that was acknowledged `seconds` after it was due."""
        self._operations[operation].inc()
        self._durations[operation].observe(seconds)

    def failed(self, operation: str) -> None:
        """Count an operation that failed."""
        self._errors[operation].inc()

    def serve(self, address: str) -> None:
        """Serve them at HOST:PORT. Raises OSError when that cannot be listened at, ValueError when it is none."""
        host, _, port = address.rpartition(":")
        start_http_server(int(port), host, self.registry)

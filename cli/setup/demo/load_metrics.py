"""The load generator's Prometheus metrics: operations, errors and response times."""

from prometheus_client import CollectorRegistry, start_http_server

from exporters.metrics_page.load_series import READ, WRITE, LoadSeries

CLIENT = "demo"


class LoadMetrics:
    """Counts operations and measures response times with the client's clock; thread-safe."""

    def __init__(self, cluster: str) -> None:
        """Create the metrics, labelled with the cluster's name."""
        self._series = LoadSeries(cluster)
        self._series.begin(CLIENT, (READ, WRITE))

    @property
    def registry(self) -> CollectorRegistry:
        return self._series.registry

    def done(self, operation: str, seconds: float) -> None:
        """Count an operation acknowledged `seconds` after its intended start."""
        self._series.completed(CLIENT, operation, seconds)

    def failed(self, operation: str) -> None:
        """Count a failed operation."""
        self._series.failed(CLIENT, operation)

    def serve(self, address: str) -> None:
        """Serve the metrics at HOST:PORT. Raises ValueError for a malformed address, OSError if it cannot be bound."""
        host, _, port = address.rpartition(":")
        start_http_server(int(port), host, self.registry)

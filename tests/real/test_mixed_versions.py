"""A real Prometheus computes percentiles across nodes with different bucket layouts to within one bucket."""

import threading
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import exp, log
from pathlib import Path
from statistics import NormalDist

import pytest

from collector.node.catalogue import CATALOGUE
from exporters.metrics_page.metric_family import LABELLED_LENGTH, UpperBounds
from tests.exporters.metrics_page.parsed import counted, rendered
from tests.real.prometheus import Prometheus
from tests.real.stores import HOST
from tests.waiting import eventually

pytestmark = pytest.mark.beside

DURATIONS = CATALOGUE["cassandra_client_request_duration_seconds"]
# The number of buckets of each simulated node: "old" has the layout of Cassandra 4.0, and "new" that of 4.1.
LENGTHS = {"old": 165, "new": 128}
REQUESTS = 10_000
QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
MERGED = f"histogram_quantile(%g, sum by (operation, le) ({DURATIONS.name}_bucket))"
INSTANCES = f"count by (instance) ({DURATIONS.name}_bucket)"
Requests = Mapping[str, list[float]]


def requests(slower: float) -> Requests:
    """Return latencies in seconds, keyed by distribution name; all but the first are multiplied by `slower`."""
    latencies = {"p99 of 16 ms": [0.001] * (REQUESTS * 98 // 100) + [0.016] * (REQUESTS * 2 // 100)}
    for median_s in (200e-6, 500e-6, 2e-3, 20e-3, 0.5):
        normal = NormalDist(log(slower * median_s))
        latencies[f"about {median_s:g}"] = [exp(normal.inv_cdf((rank + 0.5) / REQUESTS)) for rank in range(REQUESTS)]
    return latencies


@contextmanager
def served(text: str) -> Iterator[str]:
    """Serve an exposition; yield its HOST:PORT."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer((HOST, 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"{HOST}:{server.server_port}"
        server.shutdown()


def test_merged_percentiles_are_within_one_bucket_of_the_exact_ones(tmp_path: Path) -> None:
    by_node = {"old": requests(1.0), "new": requests(1.3)}
    pages = {
        node: rendered({(DURATIONS.name, kind): counted(DURATIONS, every, LENGTHS[node]) for kind, every in of.items()})
        for node, of in by_node.items()
    }
    with served(pages["old"]) as old, served(pages["new"]) as new:
        prometheus = Prometheus(tmp_path / "prometheus", {"casstat": {"static_configs": [{"targets": [old, new]}]}})
        prometheus.start()
        try:
            eventually(lambda: len(prometheus.query(INSTANCES, time.time())) == len(LENGTHS))
            answers = {q: prometheus.query(MERGED % q, time.time()) for q in QUANTILES}
        finally:
            prometheus.stop()
    bounds = [float(bound.le) for bound in UpperBounds().bounds("seconds", LABELLED_LENGTH)]
    for q, series in answers.items():
        assert len(series) == len(by_node["old"])
        for result in series:
            kind, answer_s = result["metric"]["operation"], float(result["value"][1])
            every = sorted(value for of in by_node.values() for value in of[kind])
            truth_s = every[round(q * len(every)) - 1]
            assert abs(bisect_left(bounds, answer_s) - bisect_left(bounds, truth_s)) <= 1, (kind, q, answer_s, truth_s)

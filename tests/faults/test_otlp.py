"""OTLP to a receiver that is down, rejects points or is another program: nothing is lost that could be kept."""

import gzip
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from exporters.sinks.parts.registry import sink_of
from tests.exporters.shipping.shipped import BEGIN_S, Node, drain
from tests.exporters.sinks.otlp.otlp_messages import DataPoint, decode

HOST = "127.0.62.8"
TICKS = 100
PROTOBUF = {"Content-Type": "application/x-protobuf"}

Response = tuple[int, Mapping[str, str], bytes]


def accepted(rejected: int = 0, reason: str = "") -> Response:
    """Return the response to a request, with the number of its data points that were rejected."""
    message = ExportMetricsServiceResponse()
    message.partial_success.rejected_data_points = rejected
    message.partial_success.error_message = reason
    return 200, PROTOBUF, message.SerializeToString()


class Collector:
    """Keeps the data points of requests that it answers with status 200; `respond` returns the responses."""

    def __init__(self) -> None:
        self.points: dict[object, DataPoint] = {}
        self.headers: list[Mapping[str, str]] = []
        self.respond: Callable[[list[DataPoint]], Response] = lambda _: accepted()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
                points = decode(body)
                collector.headers.append(dict(self.headers))
                status, headers, content = collector.respond(points)
                if status == 200:
                    collector.points.update({(point.name, point.attributes, point.time_ms): point for point in points})
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        self.url = f"otlp+http://{HOST}:{self._server.server_port}/v1/metrics"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    recorded = Node(tmp_path / "node")
    recorded.record(TICKS)
    yield recorded
    recorded.journal.close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    with closing(Collector()) as running:
        yield running


def test_every_tick_arrives_after_faults(node: Node, collector: Collector) -> None:
    responses: list[Response] = [(503, {"Retry-After": "7"}, b""), accepted(), (500, {}, b"<html>"), (429, {}, b"")]
    collector.respond = lambda _: responses.pop(0) if responses else accepted()
    node.store = sink_of(collector.url)  # type: ignore[assignment]
    shipping = node.shipping()
    drain(shipping)
    shipping.close()
    times = {point.time_ms for point in collector.points.values()}
    assert times == {round((BEGIN_S + number) * 1000) for number in range(TICKS)}
    assert shipping.health().refused_points == 0
    assert node.time.waits[0] == 7.5


def test_rejected_data_points_are_counted(node: Node, collector: Collector) -> None:
    collector.respond = lambda points: accepted(min(300, len(points)), "too old")
    node.store = sink_of(collector.url)  # type: ignore[assignment]
    shipping = node.shipping()
    drain(shipping)
    shipping.close()
    assert shipping.health().refused_points == 300 * len(collector.headers)
    assert any("too old" in line for line in node.messages)


def test_a_warning_of_the_receiver_is_logged(node: Node, collector: Collector) -> None:
    collector.respond = lambda _: accepted(0, "some units are unknown")
    node.store = sink_of(collector.url)  # type: ignore[assignment]
    shipping = node.shipping()
    drain(shipping)
    shipping.close()
    assert shipping.health().refused_points == 0
    assert len([line for line in node.messages if "the store accepted all points: some units are unknown" in line]) == 1


def test_late_points_that_roll_back_a_request_do_not_lose_others(node: Node, collector: Collector) -> None:
    """Prometheus stores nothing of a request with a late point."""
    late_ms = round((BEGIN_S + 30) * 1000)
    collector.respond = lambda points: (
        (400, {}, b"out of order sample") if any(point.time_ms < late_ms for point in points) else accepted()
    )
    node.store = sink_of(collector.url)  # type: ignore[assignment]
    shipping = node.shipping()
    drain(shipping)
    shipping.close()
    times = {point.time_ms for point in collector.points.values()}
    assert times == {round((BEGIN_S + number) * 1000) for number in range(30, TICKS)}
    stored = shipping.health().points
    assert stored == len(collector.points)
    assert node.time.waits == []


def test_a_page_for_people_is_not_a_receiver(node: Node, collector: Collector) -> None:
    responses: list[Response] = [(202, {"Content-Type": "text/html"}, b"<!DOCTYPE html><title>Log in</title>")]
    collector.respond = lambda _: responses.pop(0) if responses else accepted()
    node.store = sink_of(collector.url)  # type: ignore[assignment]
    shipping = node.shipping()
    drain(shipping)
    shipping.close()
    times = {point.time_ms for point in collector.points.values()}
    assert times == {round((BEGIN_S + number) * 1000) for number in range(TICKS)}
    assert any("not from the store itself" in line for line in node.messages)


def test_an_invalid_metric_is_isolated(node: Node, collector: Collector) -> None:
    def respond(points: list[DataPoint]) -> Response:
        is_invalid = any(point.name == "load" for point in points)
        return (400, {}, b"invalid metric") if is_invalid else accepted()

    collector.respond = respond
    node.store = sink_of(collector.url)  # type: ignore[assignment]
    shipping = node.shipping()
    drain(shipping)
    shipping.close()
    assert shipping.health().refused_points == TICKS
    (refused,) = (node.folder.parent / "kept").glob("*.refused")
    assert refused.read_text().count("\nload ") == TICKS


def test_the_token_is_sent_and_never_logged(node: Node, collector: Collector, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("tops3cret\n")
    token.chmod(0o600)
    responses: list[Response] = [(401, {}, b"no tops3cret here")]
    collector.respond = lambda _: responses.pop(0) if responses else accepted()
    node.store = sink_of(f"{collector.url}?token_file={token}&labels=env:prod")  # type: ignore[assignment]
    shipping = node.shipping()
    drain(shipping)
    shipping.close()
    assert {headers["Authorization"] for headers in collector.headers} == {"Bearer tops3cret"}
    assert any("credentials missing or rejected" in line for line in node.messages)
    assert not any("tops3cret" in line for line in node.messages)
    assert all(("env", "prod") in point.attributes for point in collector.points.values())

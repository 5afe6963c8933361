"""A receiver of OTLP that decodes requests with the protobuf library and keeps the data points."""

import gzip
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from tests.exporters.sinks.otlp.otlp_messages import DataPoint, decode

HOST = "127.0.62.8"
PROTOBUF = {"Content-Type": "application/x-protobuf"}

Response = tuple[int, Mapping[str, str], bytes]


def accepted(rejected: int = 0, reason: str = "") -> Response:
    """Return the response to a request, with the number of its data points that were rejected."""
    message = ExportMetricsServiceResponse()
    message.partial_success.rejected_data_points = rejected
    message.partial_success.error_message = reason
    return 200, PROTOBUF, message.SerializeToString()


class OtlpReceiver:
    """Keeps the data points of requests that it answers with status 200; `respond` returns the responses."""

    def __init__(self) -> None:
        self.points: dict[object, DataPoint] = {}
        self.conflicts: list[DataPoint] = []
        """The data points that were received again with another value."""
        self.headers: list[Mapping[str, str]] = []
        self.respond: Callable[[list[DataPoint]], Response] = lambda _: accepted()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Otherwise each body waits for the acknowledgement of its head, which takes 40 ms.
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
                points = decode(body)
                receiver.headers.append(dict(self.headers))
                status, headers, content = receiver.respond(points)
                if status == 200:
                    for point in points:
                        key = point.name, point.resource, point.attributes, point.time_ms
                        if receiver.points.setdefault(key, point) != point:
                            receiver.conflicts.append(point)
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

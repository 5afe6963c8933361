"""A receiver of remote write that decodes requests with the protobuf library and keeps the samples."""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.exporters.sinks.remote_write.messages import Decoded, Labels, decode_v1, decode_v2, histograms_of

HOST = "127.0.62.7"
V2 = "application/x-protobuf;proto=io.prometheus.write.v2.Request"
WRITTEN = "X-Prometheus-Remote-Write-Samples-Written"


@dataclass(frozen=True)
class Response:
    """A scripted response; the samples of the request are not kept."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class Receiver:
    """Keeps all samples, and fails if a sample is stored again with another value.

    `versions` are those that it accepts. `script` and, once it is empty, `rejects` return the responses to requests
    whose samples it does not keep. A request with native histograms fails like in Prometheus if they are not accepted.
    """

    def __init__(self, versions: tuple[int, ...] = (1, 2), *script: Response) -> None:
        self.versions = versions
        self.script = list(script)
        self.accepts_native = True
        self.rejects: Callable[[list[Decoded]], Response | None] = lambda _: None
        self.samples: dict[tuple[Labels, int], Decoded] = {}
        self.requests: list[tuple[str, int]] = []
        """The version of each request, and its number of samples."""
        self.headers: list[Mapping[str, str]] = []
        self.conflicts: list[Decoded] = []
        self._lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Otherwise each body waits for the acknowledgement of its head, which takes 40 ms.
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with receiver._lock:
                    response = receiver._response(dict(self.headers), body)
                self.send_response(response.status)
                for name, value in response.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(response.body)))
                self.end_headers()
                self.wfile.write(response.body)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        self.address = f"http://{HOST}:{self._server.server_port}"
        self.url = f"prometheus+{self.address}/api/v1/write"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._server.shutdown()
        self._server.server_close()

    def _response(self, headers: Mapping[str, str], body: bytes) -> Response:
        is_v2 = headers["Content-Type"] == V2
        decoded = decode_v2(body) if is_v2 else decode_v1(body)
        self.requests.append((headers["X-Prometheus-Remote-Write-Version"], len(decoded)))
        self.headers.append(headers)
        if self.script:
            return self.script.pop(0)
        if is_v2 and 2 not in self.versions:
            return Response(415)
        if is_v2 and not self.accepts_native and histograms_of(body):
            return Response(500, body=b"native histograms are disabled\n")
        if (rejection := self.rejects(decoded)) is not None:
            return rejection
        for sample in decoded:
            known = self.samples.setdefault((sample.labels, sample.time_ms), sample)
            if known[:3] != sample[:3]:
                self.conflicts.append(sample)
        return Response(204, {WRITTEN: str(len(decoded))} if is_v2 else {})

"""Pushes the series of /metrics with the OpenTelemetry protocol over HTTP."""

import gzip
import time
from collections.abc import Sequence
from importlib.metadata import version
from urllib.parse import quote

from collector.printable import one_line
from exporters.metrics_page.rendering import Options
from exporters.sinks.parts import store_http
from exporters.sinks.parts.otlp import OtlpFormat, decoded_head, request, time_ms_of
from exporters.sinks.parts.protobuf_fields import fields, read_varint
from exporters.sinks.parts.sink_url import PAGE_PARAMETERS, Target, authorization
from exporters.sinks.parts.store_http import TLS_PARAMETERS, Store, StoreResponse, masked, response_error
from exporters.sinks.parts.tick_encoder import PageSink, SeriesPoint
from exporters.sinks.sink import PartialWriteError, RefusedError

SCHEMES = ("otlp+http", "otlp+https")
URLS = (("otlp+http://HOST:4318/v1/metrics", "OpenTelemetry Collector and other receivers of OTLP"),)
DEFAULT_PATH = "v1/metrics"
STORED, VERDICTS = (200, 202, 204), (400, 422)


def connect(target: Target, options: Options) -> "Otlp":
    """Create the sink, without connecting. Raises SinkUrlError."""
    target.require_known(*PAGE_PARAMETERS, *TLS_PARAMETERS)
    return Otlp(target, options)


class Otlp(PageSink):
    """Sends data points, compressed with gzip."""

    def __init__(self, target: Target, options: Options) -> None:
        super().__init__(target, OtlpFormat(), options)
        self._path = f"/{quote(target.path or DEFAULT_PATH)}"
        self._secrets, self._headers = authorization(target)
        self._store = Store(target)

    def text(self, point: SeriesPoint) -> bytes:
        head = decoded_head(point[0])
        (_, name), *_ = fields(head.metric)
        return name + b" " + one_line(repr(head.attributes)).encode()

    def send(self, points: Sequence[SeriesPoint], timeout_s: float) -> None:
        headers = {
            **self._headers,
            "Content-Type": "application/x-protobuf",
            "Content-Encoding": "gzip",
            "User-Agent": f"casstat/{version('casstat')}",
        }
        # A higher level would take five times as long and save little.
        body = gzip.compress(request(points), 1)
        response = self._store.post(self._path, body, headers, timeout_s).without(*self._secrets)
        if response.status in STORED and not response.is_page:
            self._check_partial(response, len(points))
            return
        verdict = store_http.remote_write(response.body) if response.status in VERDICTS else None
        if verdict is not None:
            # Prometheus rolls back the whole request if a point is late.
            late = store_http.LATE.search(verdict) is not None
            raise RefusedError(one_line(f"HTTP {response.status}: {verdict}"), late=late)
        raise response_error(response, None, time.time())

    def time_ms(self, point: SeriesPoint) -> int:
        return time_ms_of(point[1])

    def close(self) -> None:
        self._store.close()

    def _check_partial(self, response: StoreResponse, sent: int) -> None:
        """Raise PartialWriteError if the receiver states that it rejected data points, or warns."""
        rejected, reason = _partial_success(response.content)
        if rejected or reason:
            raise PartialWriteError(one_line(masked(reason, self._secrets)), min(rejected, sent))


def _partial_success(body: bytes) -> tuple[int, str]:
    """Return the number of rejected data points in an ExportMetricsServiceResponse, and the reason."""
    try:
        for number, content in fields(body):
            if number != 1:
                continue
            rejected, position = (0, 0)
            if content[:1] == b"\x08":
                rejected, position = read_varint(content, 1)
            reason = next((text for field, text in fields(content[position:]) if field == 2), b"")
            return rejected, reason.decode(errors="replace")
    except IndexError:
        # Not such a message: the status states success.
        pass
    return 0, ""

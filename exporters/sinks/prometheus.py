"""Pushes the series of /metrics with Prometheus remote write 2.0, or 1.0 if the store does not accept 2.0."""

import time
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from urllib.parse import quote

from collector.printable import one_line
from exporters.metrics_page.rendering import Options
from exporters.sinks.parts import store_http
from exporters.sinks.parts.remote_write import MARK, RemoteWriteFormat, RequestsV2, request_v1, text_of, time_ms_of
from exporters.sinks.parts.sink_url import PAGE_PARAMETERS, Target, authorization, number
from exporters.sinks.parts.store_http import TLS_PARAMETERS, Store, StoreResponse, response_error
from exporters.sinks.parts.tick_encoder import PageSink, SeriesPoint
from exporters.sinks.sink import PartialWriteError, RefusedError, SinkUrlError, TooLargeError, UnavailableError

SCHEMES = ("prometheus+http", "prometheus+https")
URLS = (
    ("prometheus+http://HOST:9090/api/v1/write", "remote write: Prometheus, VictoriaMetrics, Mimir, Thanos"),
    ("prometheus+http://HOST:9090/api/v1/write?tenant=ID&token_file=PATH&labels=env:prod", "tenant, token, labels"),
)
DEFAULT_PATH = "api/v1/write"
MAX_SHARDS = 16
TENANT_HEADER = "X-Scope-OrgID"
WRITTEN, NATIVE_WRITTEN = (f"x-prometheus-remote-write-{kind}-written" for kind in ("samples", "histograms"))
MAX_DIGITS = 18
STORED, VERDICTS, UNSUPPORTED = (200, 202, 204), (400, 409, 422), 415
CONFLICT = 409
# Prometheus answers this with status 500, without storing anything.
SERVER_ERROR, NO_NATIVE_HISTOGRAMS = 500, "native histograms are disabled"


def connect(target: Target, options: Options) -> "RemoteWrite":
    """Create the sink, without connecting. Raises SinkUrlError."""
    target.require_known(*PAGE_PARAMETERS, "tenant", "shards", "native_histograms", *TLS_PARAMETERS)
    return RemoteWrite(target, options)


class RemoteWrite(PageSink):
    """Sends series in one request for each shard; the same series is always in the same shard, so it stays in order."""

    def __init__(self, target: Target, options: Options) -> None:
        series_format = RemoteWriteFormat(is_native=target.flag("native_histograms"))
        super().__init__(target, series_format, options)
        self.shards = number(target, "shards", 1, MAX_SHARDS)
        self._path = f"/{quote(target.path or DEFAULT_PATH)}"
        self._secrets, self._headers = authorization(target)
        self._headers |= {"Content-Encoding": "snappy", "User-Agent": f"casstat/{version('casstat')}"}
        if "tenant" in target.parameters:
            self._headers[TENANT_HEADER] = _tenant(target)
        self._stores = [Store(target) for _ in range(self.shards)]
        self._requests_v2 = [RequestsV2(series_format.metadata) for _ in range(self.shards)]
        self._executor = ThreadPoolExecutor(self.shards, "remote write") if self.shards > 1 else None
        # The points of the last request if it failed, and the shards that the store has accepted.
        self._stored: tuple[Sequence[SeriesPoint], frozenset[int]] = (), frozenset()
        # Whether to use 2.0, and whether the store has accepted it.
        self._is_v2, self._is_confirmed = True, False

    def text(self, point: SeriesPoint) -> bytes:
        return text_of(point).encode()

    def send(self, points: Sequence[SeriesPoint], timeout_s: float) -> None:
        if self._executor is None:
            self._send_shard(0, points, timeout_s)
            return
        shards: list[list[SeriesPoint]] = [[] for _ in range(self.shards)]
        for point in points:
            head, _ = point
            shards[zlib.crc32(head) % self.shards].append(point)
        previous, stored = self._stored
        stored = stored if previous is points else frozenset()
        futures = {
            shard: self._executor.submit(self._send_shard, shard, content, timeout_s)
            for shard, content in enumerate(shards)
            if content and shard not in stored
        }
        errors = {**dict.fromkeys(stored), **{shard: future.exception() for shard, future in futures.items()}}
        if any(errors.values()):
            self._stored = points, frozenset(shard for shard, error in errors.items() if error is None)
            raise _combined(list(errors.values()))
        self._stored = (), frozenset()

    def time_ms(self, point: SeriesPoint) -> int:
        return time_ms_of(point)

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=False)
        for store in self._stores:
            store.close()

    def _send_shard(self, shard: int, points: Sequence[SeriesPoint], timeout_s: float) -> None:
        """Send points with 2.0, or with 1.0 once the store has shown that it does not accept 2.0."""
        if self._is_v2:
            response = self._post(shard, self._requests_v2[shard].request(points), timeout_s, is_v2=True)
            if not self._is_unsupported(response):
                # Other answers, such as 503, may come from a store that does not know 2.0.
                self._is_confirmed |= _written(response) is not None
                if response.status == SERVER_ERROR and NO_NATIVE_HISTOGRAMS in response.body:
                    self._send_classic(shard, points, timeout_s, response)
                else:
                    _check(response, len(points), _written(response))
                return
        body = request_v1(points)
        if not body:
            # There are only native histograms.
            return
        response = self._post(shard, body, timeout_s, is_v2=False)
        is_understood = response.status in STORED or store_http.LATE.search(response.body) is not None
        if is_understood and not response.is_page and not self._is_confirmed:
            self._is_v2 = False
        _check(response, len(points), None)

    def _send_classic(
        self, shard: int, points: Sequence[SeriesPoint], timeout_s: float, response: StoreResponse
    ) -> None:
        """Send the points without native histograms, which the store does not accept; raise PartialWriteError."""
        classic = [point for point in points if point[0][0] != MARK]
        if len(classic) == len(points):
            _check(response, len(points), None)
        if classic:
            self._send_shard(shard, classic, timeout_s)
        raise PartialWriteError(f"HTTP {response.status}: {NO_NATIVE_HISTOGRAMS}", len(points) - len(classic))

    def _is_unsupported(self, response: StoreResponse) -> bool:
        """Return whether the store may not accept 2.0.

        A store that knows only 1.0 answers with status 415 or 400, or ignores the unknown fields and reports success
        without the number of samples that it has written.
        """
        if _written(response) is not None:
            return False
        if response.status in STORED:
            return True
        return response.status == UNSUPPORTED or (response.status in VERDICTS and not self._is_confirmed)

    def _post(self, shard: int, body: bytes, timeout_s: float, *, is_v2: bool) -> StoreResponse:
        import cramjam

        message = ";proto=io.prometheus.write.v2.Request" if is_v2 else ""
        headers = {
            **self._headers,
            "Content-Type": f"application/x-protobuf{message}",
            "X-Prometheus-Remote-Write-Version": "2.0.0" if is_v2 else "0.1.0",
        }
        compressed = bytes(cramjam.snappy.compress_raw(body))
        return self._stores[shard].post(self._path, compressed, headers, timeout_s).without(*self._secrets)


def _tenant(target: Target) -> str:
    """Return the tenant. Raises SinkUrlError if a header cannot contain it."""
    tenant = target.parameters["tenant"]
    if not (tenant.isascii() and tenant.isprintable()):
        raise SinkUrlError(f"{target.name}: tenant={one_line(tenant)}: must be printable ASCII text")
    return tenant


def _written(response: StoreResponse) -> int | None:
    """Return the number of samples and histograms that the store states it has written; None if it does not."""
    samples, histograms = (
        response.headers.get(name, default) for name, default in ((WRITTEN, ""), (NATIVE_WRITTEN, "0"))
    )
    if not all(text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS for text in (samples, histograms)):
        return None
    return int(samples) + int(histograms)


def _check(response: StoreResponse, sent: int, written: int | None) -> None:
    """Raise the error for a response, given the number of samples sent and of those written, if it is known."""
    is_stored = response.status in STORED and (written is not None or not response.is_page)
    if is_stored and (written is None or written >= sent):
        return
    verdict = store_http.remote_write(response.body) if response.status in VERDICTS else None
    if written is not None and (is_stored or response.status in VERDICTS):
        # The statement of the number shows that the response is from the store, whatever its body.
        verdict = verdict or response.text or "not all samples were written"
    if verdict is None:
        raise response_error(response, None, time.time())
    reason = one_line(f"HTTP {response.status}: {verdict}")
    # A reason is cut to a line, and may state only at its end that samples are late.
    late = response.status == CONFLICT or store_http.LATE.search(verdict) is not None
    if written or (late and written is not None):
        raise PartialWriteError(reason, max(sent - written, 0))
    # A store that knows only 1.0 may have rolled back all samples, or stored those that are not late.
    raise RefusedError(reason, all_points=written == 0, late=late)


def _combined(errors: Sequence[BaseException | None]) -> BaseException:
    """Return the error for a request, given those of its shards, None for success."""
    causes = [error for error in errors if error is not None]
    partial = [error for error in causes if isinstance(error, PartialWriteError)]
    refused = [error for error in causes if isinstance(error, RefusedError)]
    others = [error for error in causes if not isinstance(error, PartialWriteError | RefusedError)]
    if others:
        # An unexpected error is more severe than an unavailable store, and that more than a request that is too large.
        return min(others, key=lambda error: (isinstance(error, TooLargeError), isinstance(error, UnavailableError)))
    if refused:
        all_points = len(refused) == len(errors) and all(error.all_points for error in refused)
        return RefusedError(str(refused[0]), all_points=all_points, late=all(error.late for error in refused))
    return PartialWriteError(str(partial[0]), sum(error.refused for error in partial))

"""Sends points to InfluxDB 2 and to stores with the same API, such as InfluxDB 1.8 and VictoriaMetrics.

A point is a line of InfluxDB's line protocol: one for each series, whose part before the fields is cached.
"""

import gzip
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from collector.model.histogram import Buckets
from collector.model.metric import Metric, Series
from collector.model.snapshot import Identity, Placement, Rate, Sample
from exporters.metrics_page.rendering import Options
from exporters.sinks.parts import store_http
from exporters.sinks.parts.points import EVENTS, SampleSink, events, histogram_fields, owner_tags, tags, time_ms
from exporters.sinks.parts.sink_url import Target
from exporters.sinks.parts.store_http import TLS_PARAMETERS, Store, StoreResponse, response_error
from exporters.sinks.sink import NodeTick, SinkUrlError, UnavailableError

SCHEMES = ("influxdb+http", "influxdb+https")
URLS = (
    ("influxdb+http://HOST:8086/BUCKET?org=ORG&token_file=PATH", "InfluxDB 2"),
    ("influxdb+http://HOST:8086/DB/autogen?token_file=PATH", "InfluxDB 1.8; the file contains user:password"),
)
DROPPED = re.compile(r"\bdropped=(\d+)")
# Characters that become spaces: a line feed would end the point, and the others are not allowed in names.
BLANKS = {ord(letter): " " for letter in "\n\r\t\0\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"}
ESCAPED = {ord(letter): f"\\{letter}" for letter in ",= "}
# Backslashes that become slashes. InfluxDB and VictoriaMetrics disagree about a backslash at the end of a name or
# value, and before another backslash or an escaped character.
ODD_BACKSLASH = re.compile(r"\\(?=[\\,= ]|$)")
QUOTED = {ord("\\"): "/", ord('"'): "'"}
MAX_TEXT_CHARS = 1000
# Unused series are deleted when the number of cached series exceeds twice the current number by more than SPARE.
SPARE = 1000
NO_NAME = re.compile(r"[^\w:.-]")


def connect(target: Target, _: Options) -> "InfluxDB":
    """Create the sink, without connecting. Raises SinkUrlError."""
    target.require_known("org", "token_file", "gzip", *TLS_PARAMETERS)
    bucket = target.path.rstrip("/")
    if not bucket:
        raise SinkUrlError(f"{target.name}: no bucket in the URL (hint: use {target.scheme}://HOST:PORT/BUCKET)")
    return InfluxDB(target, bucket)


class InfluxDB(SampleSink):
    """Writes line protocol with influxdb_client, bypassing its point objects and retries."""

    def __init__(self, target: Target, bucket: str) -> None:
        """Create the client; it connects on the first request."""
        from influxdb_client.client.write_api import SYNCHRONOUS

        self.name = target.name
        self._bucket = bucket
        self._org = target.parameters.get("org", "")
        self._token = target.secret("token_file")
        self._gzip = target.flag("gzip")
        # The beginnings of the lines of the last sample's series, and of all known series of a node.
        self._of: tuple[Mapping[str, Metric], Identity, Placement] | None = None
        self._series: list[Series] = []
        self._heads: list[bytes] = []
        self._known: dict[Series, bytes] = {}
        self._pool = _Pool(Store(target))
        self._client = _client(target.address, self._token)
        self._client.api_client.rest_client.pool_manager = self._pool
        if self._gzip:
            self._client.api_client.set_default_header("Content-Encoding", "gzip")
        self._writer = self._client.write_api(write_options=SYNCHRONOUS)

    def encode_sample(self, tick: NodeTick, sample: Sample) -> list[bytes]:
        """Return a line, without its line feed, for each series that `points.rows` yields and each kind of event."""
        self._prepare((self.catalogue, tick.identity, tick.placement), list(sample.values))
        lines = []
        tail = b" %d000000" % time_ms(sample)
        # Most counters do not change within a second, and concatenation is faster than formatting.
        zero_rate, zero_value = b"per_s=0" + tail, b"value=0.0" + tail
        # This loop takes half the time of `points.rows`, because it does not create an object for each series.
        for head, series, value in zip(self._heads, self._series, sample.values.values(), strict=True):
            if not head:
                continue
            if type(value) is Rate:
                increase, elapsed_s, aggregated = value
                if not increase:
                    lines.append(head + zero_rate)
                    continue
                number = increase / elapsed_s if aggregated is None else aggregated
                if number - number == 0:
                    # 12 significant digits suffice because times are rounded to 10 µs; 17 take twice as long to format.
                    lines.append(b"%bper_s=%.12g%b" % (head, number, tail))
            elif type(value) is float:
                if not value:
                    lines.append(head + zero_value)
                elif value - value == 0:
                    lines.append(b"%bvalue=%a%b" % (head, value, tail))
            elif isinstance(value, Buckets):
                fields = histogram_fields(self.catalogue[series[0]], series, value, sample)
                lines.append(_template(tuple(fields)) % (head, *fields.values(), tail))
        lines.extend(_event_lines(tick.identity, sample))
        return lines

    def _prepare(self, of: tuple[Mapping[str, Metric], Identity, Placement], all_series: list[Series]) -> None:
        """Look up the heads of a sample's series, unless the previous sample had the same series."""
        if of != self._of:
            self._of, self._known, self._series, self._heads = of, {}, [], []
        if all_series == self._series:
            return
        known = self._known
        if len(known) > 2 * len(all_series) + SPARE:
            # Compactions and tables come and go, so drop the series that are gone.
            self._known = known = {series: known[series] for series in all_series if series in known}
        for series in all_series:
            if series not in known:
                known[series] = _head(*of, series)
        self._series, self._heads = all_series, [known[series] for series in all_series]

    def send(self, points: Sequence[bytes], timeout_s: float) -> None:
        from influxdb_client.rest import ApiException

        body = b"\n".join(points)
        if self._gzip:
            # Use gzip level 1: the client's default level takes five times as long and saves little.
            body = gzip.compress(body, 1)
        self._pool.begin(timeout_s)
        # The client raises this for an unsuccessful response, which the pool keeps.
        with suppress(ApiException):
            self._writer.write(self._bucket, self._org, body)
        if self._pool.response is None:
            raise UnavailableError("influxdb_client sent no request")
        response = self._pool.response.without(self._token)
        if response.stored:
            return
        verdict = store_http.influxdb(response.body)
        dropped = DROPPED.search(verdict or "")
        all_points = dropped is not None and int(dropped[1]) == len(points)
        raise response_error(response, verdict, time.time(), all_points=all_points)

    def close(self) -> None:
        self._client.close()
        self._pool.clear()


class _Pool:
    """Replaces the client's connection pool, which limits neither the time nor the size of a response."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._timeout_s = 0.0
        self.response: StoreResponse | None = None
        """The response to the last request."""

    def begin(self, timeout_s: float) -> None:
        """Set the time for the next request, and forget the last response."""
        self._timeout_s, self.response = timeout_s, None

    def request(self, _: str, url: str, *, body: bytes, headers: Mapping[str, str], **_options: Any) -> SimpleNamespace:
        """Send a POST request and return the response as the client expects it. Raises UnavailableError."""
        parts = urlsplit(url)
        self.response = response = self._store.post(f"{parts.path}?{parts.query}", body, headers, self._timeout_s)
        # The client decodes the data as UTF-8 without handling errors.
        return SimpleNamespace(status=response.status, reason="", headers=response.headers, data=response.body.encode())

    def clear(self) -> None:
        """Close the connection."""
        self._store.close()


def _event_lines(identity: Identity, sample: Sample) -> Iterator[bytes]:
    """Yield a line for each kind of event.

    Each line contains the texts (for annotations) and their count (for stores that accept only numbers).
    """
    for kind, texts in events(sample).items():
        words = [f"{key(name)}={key(value)}" for name, value in {**identity.labels(), "kind": kind}.items()]
        text = "; ".join(texts)[:MAX_TEXT_CHARS].translate(BLANKS).translate(QUOTED)
        head = ",".join([EVENTS, *words])
        yield f'{head} count={len(texts)},text="{text}" {time_ms(sample)}000000'.encode(errors="replace")


@lru_cache(maxsize=16)
def _template(names: tuple[str, ...]) -> bytes:
    """Return a format string for a line's head, a histogram's fields, and the line's tail."""
    return b"%b" + ",".join(f"{name}=%.12g" for name in names).encode() + b"%b"


def _head(catalogue: Mapping[str, Metric], identity: Identity, placement: Placement, series: Series) -> bytes:
    """Return the line up to its fields; b"" for a series that the catalogue does not define."""
    metric = catalogue.get(series[0])
    if metric is None or len(series) != len(metric.labels) + 1:
        return b""
    # A series label takes precedence over a node label with the same name.
    labels = dict([*identity.labels().items(), *owner_tags(metric, placement), *tags(metric, series)])
    words = [f"{key(name)}={key(value)}" for name, value in labels.items()]
    head = ",".join([NO_NAME.sub("_", metric.name), *words]) + " "
    # Lone surrogates cannot be encoded as UTF-8.
    return head.encode(errors="replace")


def key(text: str) -> str:
    """Return a tag name or value with its special characters escaped or replaced."""
    return ODD_BACKSLASH.sub("/", text.translate(BLANKS)).translate(ESCAPED)


def _client(url: str, token: str) -> Any:
    """Return the library's client; importing it here saves agents without this sink 26 MB and a second."""
    from influxdb_client import InfluxDBClient  # type: ignore[attr-defined]

    return InfluxDBClient(url, token)

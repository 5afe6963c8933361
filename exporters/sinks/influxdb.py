"""Sends points to InfluxDB 2, to stores with the same API such as InfluxDB 1.8, and to VictoriaMetrics."""

import gzip
import re
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from collector.merge.aggregation import NOWHERE, Placement
from collector.model.identity import Identity
from collector.model.metric import Metric
from collector.model.sample import Sample
from exporters.metrics_page.rendering import Options
from exporters.sinks.parts import store_responses
from exporters.sinks.parts.line_protocol import LineEncoder
from exporters.sinks.parts.sample_sink import SampleSink
from exporters.sinks.parts.sink_url import Target
from exporters.sinks.parts.store_tls import PARAMETERS, access_of, context_of
from exporters.sinks.sink import SinkUrlError

if TYPE_CHECKING:
    from exporters.sinks.parts.store_http import StoreResponse

DEPRECATED = ("victoriametrics+http", "victoriametrics+https")
SCHEMES = ("influxdb+http", "influxdb+https", *DEPRECATED)
URLS = (
    ("influxdb+http://HOST:8086/BUCKET?org=ORG&token_file=PATH", "InfluxDB 2"),
    ("influxdb+http://HOST:8086/DB/autogen?token_file=PATH", "InfluxDB 1.8; the file contains user:password"),
    ("victoriametrics+http://HOST:8428", "deprecated: use prometheus+http"),
)
DROPPED = re.compile(r"\bdropped=(\d+)")


def connect(target: Target, _: Options) -> "InfluxDB":
    """Create the sink, without connecting. Raises SinkUrlError."""
    target.require_known("org", "token_file", "gzip", *PARAMETERS)
    bucket = target.path.rstrip("/")
    if not bucket and target.scheme.startswith("influxdb"):
        raise SinkUrlError(f"{target.name}: no bucket in the URL (hint: use {target.scheme}://HOST:PORT/BUCKET)")
    return InfluxDB(target, bucket)


class InfluxDB(SampleSink):
    """Writes line protocol with influxdb_client, bypassing its point objects and retries."""

    def __init__(self, target: Target, bucket: str) -> None:
        """Create the client; it connects on the first request."""
        from influxdb_client.client.write_api import SYNCHRONOUS

        from exporters.sinks.parts.store_http import Pools

        self.name = target.name
        if target.scheme in DEPRECATED:
            scheme = target.scheme.replace("victoriametrics", "prometheus")
            self.deprecated = f"deprecated (hint: use {scheme}://HOST:8428/api/v1/write, with the series of /metrics)"
        self._host = target.host
        self._bucket = bucket
        self._org = target.parameters.get("org", "")
        self._token = target.secret("token_file")
        self._gzip = target.flag("gzip")
        self._lines = LineEncoder()
        self._access = access_of(target)
        self._pools = Pools(context_of(target, self._access))
        self._client = _client(target.address, self._token)
        # Replace the client's connection pool, which limits neither the time nor the size of a response.
        self._client.api_client.rest_client.pool_manager = self._pools
        if self._gzip:
            self._client.api_client.set_default_header("Content-Encoding", "gzip")
        self._writer = self._client.write_api(write_options=SYNCHRONOUS)

    def encode_sample(
        self, catalogue: Mapping[str, Metric], identity: Identity, sample: Sample, placement: Placement = NOWHERE
    ) -> list[bytes]:
        """Return a line for each series and each kind of event."""
        return self._lines.encode(catalogue, identity, sample, placement)

    def send(self, points: Sequence[bytes], timeout_s: float) -> None:
        from influxdb_client.rest import ApiException

        from exporters.sinks.parts.store_http import FAILURES, connection_error, response_error

        body = b"\n".join(points)
        if self._gzip:
            # Use gzip level 1: the client's default level takes five times as long and saves little.
            body = gzip.compress(body, 1)
        self._client.api_client.configuration.timeout = timeout_s * 1000
        try:
            self._writer.write(self._bucket, self._org, body)
            response = self._answer(self._client.api_client.last_response)
            if response.stored:
                return
        except ApiException as error:
            if not error.status and isinstance(error.__context__, Exception):
                # The library turns a TLS error into an ApiException without a status.
                raise connection_error(error.__context__, self._host, self._access) from None
            response = self._answer(error.response)
        except FAILURES as error:
            raise connection_error(error, self._host, self._access) from None
        verdict = store_responses.influxdb(response.body)
        dropped = DROPPED.search(verdict or "")
        all_points = dropped is not None and int(dropped[1]) == len(points)
        raise response_error(response, verdict, time.time(), all_points=all_points)

    def close(self) -> None:
        self._client.close()
        self._pools.clear()

    def _answer(self, response: Any) -> "StoreResponse":
        from exporters.sinks.parts.store_http import StoreResponse

        headers = {name.lower(): value for name, value in response.getheaders().items()}
        return StoreResponse(response.status, headers, str(response.data or "")).without(self._token)


def _client(url: str, token: str) -> Any:
    """Return the library's client; importing it here saves agents without this sink 26 MB and a second."""
    from influxdb_client import InfluxDBClient  # type: ignore[attr-defined]

    return InfluxDBClient(url, token)

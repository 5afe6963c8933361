"""Sends points to Blueflood through its JSON ingest API.

Names are dotted: cluster.dc.rack.node.metric.labels.field. Blueflood refuses points that are days old or in the future.
"""

import json
import time
from collections.abc import Sequence
from urllib.parse import quote

from collector.model.snapshot import Sample
from collector.printable import one_line
from exporters.metrics_page.rendering import Options
from exporters.sinks.parts import store_http
from exporters.sinks.parts.points import PathCache, SampleSink, rows, time_ms
from exporters.sinks.parts.sink_url import Target
from exporters.sinks.parts.store_http import TLS_PARAMETERS, Store, response_error
from exporters.sinks.sink import NodeTick, SinkUrlError, UnavailableError

SCHEMES = ("blueflood+http", "blueflood+https")
URLS = (("blueflood+http://HOST:19000/TENANT?ttl_s=SECONDS", ""),)
TTL_S = 172800
MAX_TTL_S = 2**31 - 1
# The HTTP status with which Blueflood reports that it accepted the points but did not store them in time.
NOT_STORED_IN_TIME = 202


def connect(target: Target, _: Options) -> "Blueflood":
    """Create the sink, without connecting. Raises SinkUrlError."""
    target.require_known("ttl_s", "token_file", *TLS_PARAMETERS)
    tenant, ttl = target.path.strip("/"), target.parameters.get("ttl_s", str(TTL_S))
    if not tenant or "/" in tenant:
        raise SinkUrlError(
            f"{target.name}: the URL's path is not a single tenant (hint: use {target.scheme}://HOST:PORT/TENANT)"
        )
    if not (ttl.isascii() and ttl.isdigit() and 0 < int(ttl[:11]) <= MAX_TTL_S):
        allowed = f"a whole number of seconds from 1 to {MAX_TTL_S}"
        raise SinkUrlError(f"{target.name}: ttl_s={one_line(ttl)}: must be {allowed} (hint: use {TTL_S}, for example)")
    return Blueflood(target, tenant, int(ttl))


class Blueflood(SampleSink):
    """Posts JSON arrays of points."""

    def __init__(self, target: Target, tenant: str, ttl_s: int) -> None:
        self.name = target.name
        self._path = f"/v2.0/{quote(tenant, safe='')}/ingest"
        self._ttl_s = ttl_s
        self._token = target.secret("token_file")
        self._paths = PathCache("")
        self._store = Store(target)

    def encode_sample(self, tick: NodeTick, sample: Sample) -> list[bytes]:
        """Return a JSON object for each field of each series."""
        begin = f'{{"collectionTime":{time_ms(sample)},"ttlInSeconds":{self._ttl_s},"metricValue":'
        points = []
        for series, fields in rows(self.catalogue, sample):
            path = self._paths.of(tick.identity, series)
            for name, value in fields.items():
                points.append(f'{begin}{value!r},"metricName":{json.dumps(f"{path}.{name}")}}}'.encode())
        return points

    def send(self, points: Sequence[bytes], timeout_s: float) -> None:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token:
            headers["X-Auth-Token"] = self._token
        response = self._store.post(self._path, b"[" + b",".join(points) + b"]", headers, timeout_s)
        if response.status == NOT_STORED_IN_TIME:
            raise UnavailableError("HTTP 202: the points were accepted but not stored in time")
        if not response.stored:
            response = response.without(self._token)
            raise response_error(response, store_http.blueflood(response.body), time.time())

    def close(self) -> None:
        self._store.close()

"""Sends points in Graphite's plaintext protocol, which other stores accept as well.

A dotted name is PREFIX.cluster.dc.rack.node.metric.labels.field; with tags, a name is
PREFIX.metric.field;cluster=…;dc=…;label=…

The protocol has no responses. Each batch is sent over its own connection, which is shut down for sending after the last
line; once the store has closed its side, it has read everything. Times are whole seconds.
"""

import re
import socket
import time
from collections.abc import Sequence
from contextlib import closing

from collector.http.access import connection_failure
from collector.model.metric import Metric, Series
from collector.model.snapshot import Identity, Sample
from exporters.metrics_page.rendering import Options
from exporters.sinks.parts.points import PathCache, SampleSink, part, rows, tags, time_ms
from exporters.sinks.parts.sink_url import Target
from exporters.sinks.sink import NodeTick, SinkUrlError, UnavailableError

SCHEMES = ("graphite",)
URLS = (("graphite://HOST:2003/PREFIX", "dotted names"), ("graphite://HOST:2003/PREFIX?tags=1", "names with tags"))
PORT = 2003
# Characters that are replaced in tags. Graphite allows a tilde in a value, but not at its beginning.
NOT_IN_TAGS = re.compile(r"[;~\s\x00-\x1f]")
PREFIX = re.compile(r"[A-Za-z0-9_.-]*")
CHUNK_BYTES = 4096


def connect(target: Target, _: Options) -> "Graphite":
    """Create the sink, without connecting. Raises SinkUrlError."""
    target.require_known("tags")
    prefix = target.path.strip("/.")
    if not PREFIX.fullmatch(prefix):
        raise SinkUrlError(f"{target.name}: invalid prefix (hint: use letters, digits, '_', '-' and dots)")
    return Graphite(target, prefix, tagged=target.flag("tags"))


class Graphite(SampleSink):
    """Sends lines, opening a new connection for each batch."""

    def __init__(self, target: Target, prefix: str, *, tagged: bool) -> None:
        self.name = target.name
        self._address = target.host, target.port or PORT
        self._prefix = prefix
        self._tagged = tagged
        self._paths = PathCache(prefix)

    def encode_sample(self, tick: NodeTick, sample: Sample) -> list[bytes]:
        """Return a line for each field of each series."""
        time_s = time_ms(sample) // 1000
        lines = []
        for series, fields in rows(self.catalogue, sample):
            if self._tagged:
                words = _tags(self.catalogue[series[0]], tick.identity, series)
                prefix = f"{self._prefix}." if self._prefix else ""
                lines += [
                    f"{prefix}{part(series[0])}.{name}{words} {value!r} {time_s}" for name, value in fields.items()
                ]
            else:
                path = self._paths.of(tick.identity, series)
                lines += [f"{path}.{name} {value!r} {time_s}" for name, value in fields.items()]
        return [line.encode(errors="replace") for line in lines]

    def send(self, points: Sequence[bytes], timeout_s: float) -> None:
        """Send lines, and wait until the store has read them."""
        ends_s = time.monotonic() + timeout_s

        def left_s() -> float:
            left_s = ends_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            return left_s

        try:
            with closing(socket.create_connection(self._address, timeout_s)) as stream:
                stream.settimeout(left_s())
                stream.sendall(b"".join(b"%b\n" % point for point in points))
                stream.shutdown(socket.SHUT_WR)
                stream.settimeout(left_s())
                while stream.recv(CHUNK_BYTES):
                    stream.settimeout(left_s())
        except TimeoutError:
            raise UnavailableError("the store failed to read all points and close the connection in time") from None
        except OSError as error:
            raise UnavailableError(connection_failure(error).text) from None


def _tags(metric: Metric, identity: Identity, series: Series) -> str:
    labels = {**identity.labels(), **dict(tags(metric, series))}
    return "".join(f";{NOT_IN_TAGS.sub('_', name)}={NOT_IN_TAGS.sub('_', value)}" for name, value in labels.items())

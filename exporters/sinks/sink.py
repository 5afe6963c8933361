"""The sink interface, and the errors that a store may cause; `exporters.shipping` does everything else.

A module in this directory is a sink if it defines `SCHEMES`, its URL schemes; `URLS`, the forms of its URLs for the
help, each with a remark or ""; and `connect`, which creates the sink for an `exporters.sinks.parts.sink_url.Target` or
raises SinkUrlError. It imports its client library in `connect` or later, because every agent imports all sinks.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from collector.cluster.aggregation import NOWHERE, Placement
from collector.model.identity import Identity
from collector.model.metric import Metric
from collector.model.sample import Sample


class Sink(Protocol):
    """A store that samples are pushed to."""

    @property
    def name(self) -> str:
        """The name in logs, metrics and files: scheme, host, port and path, without secrets."""

    def encode(
        self, catalogue: Mapping[str, Metric], identity: Identity, sample: Sample, placement: Placement = NOWHERE
    ) -> list[bytes]:
        """Return a sample's points in the store's format; the same sample always gives the same points.

        `catalogue` is the catalogue of the sample's recording. `placement` states where the node runs.
        """

    def send(self, points: Sequence[bytes], timeout_s: float) -> None:
        """Send points and return when the store has received them.

        The limits on the number of points, their size and the time are those of `exporters.shipping.delivery`; a sink
        whose store accepts less splits the points. Raises UnavailableError, TooLargeError or RefusedError.
        """

    def close(self) -> None:
        """Close any open connections."""


class SinkUrlError(ValueError):
    """An invalid sink URL; the message is one line with the cause and without secrets."""


class UnavailableError(Exception):
    """The store is not accepting points: it is down or overloaded, or it rejects the credentials.

    retry_after_s  the delay that the store asks for, if any.
    """

    def __init__(self, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class TooLargeError(Exception):
    """A server in front of the store, such as a proxy, rejects the request as too large; a smaller one may succeed."""


class RefusedError(Exception):
    """The store itself refuses these points for good: at least one is invalid, or there are too many.

    all_points  whether the store states that it accepted none of them; there is then no need to find the invalid ones.
    """

    def __init__(self, reason: str, *, all_points: bool = False) -> None:
        super().__init__(reason)
        self.all_points = all_points

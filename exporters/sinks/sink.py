"""The interface of a sink, and the errors of its store; `exporters.shipping` does the rest, the same for all sinks.

A module in this folder is a sink if it has `SCHEMES`, its URL schemes, and `connect`, which creates the sink of a
`exporters.sinks.parts.sink_url.Target` or raises SinkUrlError.
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
        """Return the points of a sample, one series each; always the same for the same sample.

        `catalogue` defines the sample's metrics, as its recording does. `placement` is where the node runs.
        """

    def send(self, points: Sequence[bytes], timeout_s: float) -> None:
        """Send points and return when the store has them.

        Raises UnavailableError, TooLargeError or RefusedError.
        """

    def close(self) -> None:
        """Close the connection."""


class SinkUrlError(ValueError):
    """An invalid sink URL; the message is one line with the cause and without secrets."""


class UnavailableError(Exception):
    """The store accepts no points at present: it is down, overloaded, or rejects the credentials.

    retry_after_s  the delay that it asks for, if any.
    """

    def __init__(self, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class TooLargeError(Exception):
    """The request is too large for something in front of the store, such as a proxy; fewer points may pass."""


class RefusedError(Exception):
    """The store itself refuses these points for good: at least one is invalid, or there are too many.

    all_points  whether the store states that it took none of them, so that searching for the invalid ones is useless.
    """

    def __init__(self, reason: str, *, all_points: bool = False) -> None:
        super().__init__(reason)
        self.all_points = all_points

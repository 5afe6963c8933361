"""What every sink is, and what its store may answer; shipping, which is the same for all, is `exporters.shipping`.

A module in this folder is a sink when it has `SCHEMES`, the schemes of the URLs that mean it, and `connect`, which
makes the sink of such a URL's `exporters.sinks.parts.sink_url.Target` and raises SinkUrlError.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from collector.model.identity import Identity
from collector.model.metric import Metric
from collector.model.sample import Sample


class Sink(Protocol):
    """One store that samples are pushed to."""

    @property
    def name(self) -> str:
        """What it is called in logs, metrics and files: scheme, host and port, no secrets."""

    def encode(self, catalogue: Mapping[str, Metric], identity: Identity, sample: Sample) -> list[bytes]:
        """Return what to send of a sample: a point of one series each, the same ones for the same sample.

        `catalogue` says what the sample's series mean, as its recording does.
        """

    def send(self, points: Sequence[bytes], timeout_s: float) -> None:
        """Send points and return when the store has them.

        Raises UnavailableError, TooLargeError or RefusedError.
        """

    def close(self) -> None:
        """Leave the store."""


class SinkUrlError(ValueError):
    """A URL that means no sink; the message says why and what would, in one line, without secrets."""


class UnavailableError(Exception):
    """The store takes nothing now, whatever the points: it is down, busy, or does not know who asks.

    retry_after_s  how long it asks to be left alone; None when it does not say.
    """

    def __init__(self, why: str, retry_after_s: float | None = None) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s


class TooLargeError(Exception):
    """The request is too large for something before the store, such as a proxy; fewer points may get through."""


class RefusedError(Exception):
    """The store itself says that it will never take all of these points together: one is wrong, or they are too many.

    every  whether the store says that it takes none of them, so that nobody need look for the wrong ones.
    """

    def __init__(self, why: str, *, every: bool = False) -> None:
        super().__init__(why)
        self.every = every

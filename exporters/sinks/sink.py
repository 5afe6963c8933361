"""The sink interface, and the errors that a store may cause; `exporters.sinks.shipping` does everything else.

A module in this directory is a sink if it defines `SCHEMES`, its URL schemes; `URLS`, the forms of its URLs for the
help, each with a remark or ""; and `connect`, which creates the sink for an `exporters.sinks.parts.sink_url.Target` and
the options of /metrics, or raises SinkUrlError. It imports its client library in `connect` or later, because every
agent imports all sinks.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from prometheus_client.metrics_core import Metric

from collector.model.snapshot import NOWHERE, Identity, Placement, Sample, Snapshot
from collector.recording.header import Header

LiveFamilies = Callable[[], Iterable[Metric]]

P = TypeVar("P")
"""The type of a sink's points."""


@dataclass(frozen=True)
class NodeTick:
    """One tick of a node.

    header     the header of its recording.
    identity   the node's identity.
    snapshot   the raw values.
    sample     the sample of the interval that ends with it; None for the first tick of a session.
    placement  where the node runs.
    live       returns the self-metrics that only a running agent knows; none for a tick that is read from a file.
    """

    header: Header
    identity: Identity
    snapshot: Snapshot
    sample: Sample | None
    placement: Placement = NOWHERE
    live: LiveFamilies = tuple


class Sink(ABC, Generic[P]):
    """A store that ticks are pushed to.

    name          the name in logs, metrics and files: scheme, host, port and path, without secrets.
    shards        the number of requests that `send` sends at the same time.
    exports_page  whether the points are the series of /metrics, and depend on its options.
    """

    name: str
    shards: int = 1
    exports_page: bool = False

    @abstractmethod
    def encode(self, tick: NodeTick) -> list[P]:
        """Return a tick's points in the store's format.

        The same ticks, in the same order, always give the same points.
        """

    @abstractmethod
    def send(self, points: Sequence[P], timeout_s: float) -> None:
        """Send points and return when the store has received them.

        The limits on the number of points, their size and the time are those of `exporters.sinks.shipping.delivery`; a
        sink whose store accepts less splits the points. Raises UnavailableError, TooLargeError, RefusedError or
        PartialWriteError.
        """

    def replay(self, tick: NodeTick) -> None:
        """Process a tick that was sent before the program started; only a sink whose points depend on it needs to."""
        return

    def state(self) -> Mapping[str, Any]:
        """Return what `replay` cannot restore, as JSON values for the checkpoint of the last tick."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state in a checkpoint. Raises TypeError, ValueError or KeyError if it is malformed."""
        return

    def time_ms(self, point: P) -> int:
        """Return a point's time if the store accepts the points of a series only in ascending order, otherwise 0."""
        return 0

    @abstractmethod
    def size_bytes(self, point: P) -> int:
        """Return the approximate size of a point in a request, before compression."""

    @abstractmethod
    def text(self, point: P) -> bytes:
        """Return a point as one line of text, for the dead-letter file."""

    def close(self) -> None:
        """Close any open connections."""
        return


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


class PartialWriteError(Exception):
    """The store states that it has stored all points except some that it will never accept, such as those too old.

    refused  the number of points that the store did not accept; 0 if the store only warns.
    """

    def __init__(self, reason: str, refused: int) -> None:
        super().__init__(reason)
        self.refused = refused


class RefusedError(Exception):
    """The store itself refuses these points for good: at least one is invalid, or there are too many.

    all_points  whether the store states that it accepted none of them; there is then no need to find the invalid ones.
    late        whether the reason is the time of a point, so that the store is not misconfigured.
    """

    def __init__(self, reason: str, *, all_points: bool = False, late: bool = False) -> None:
        super().__init__(reason)
        self.all_points, self.late = all_points, late

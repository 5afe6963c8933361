"""A store of remote write in memory."""

from collections.abc import Sequence

from exporters.metrics_page.rendering import Options
from exporters.sinks.parts.remote_write import RemoteWriteFormat, text_of, time_ms_of
from exporters.sinks.parts.sink_url import Target
from exporters.sinks.parts.tick_encoder import PageSink, SeriesPoint


class SampleReceiver(PageSink):
    """Keeps the content of each point by its head and time, and fails if one is stored again with another value."""

    def __init__(self, interval_s: int = 0) -> None:
        self.samples: dict[tuple[bytes, int], bytes] = {}
        self._target = Target("fake", "receiver", None, "", {"interval_s": str(interval_s)})
        self.begin()

    def begin(self) -> None:
        """Forget all ticks, like a new program, but not the samples."""
        super().__init__(self._target, RemoteWriteFormat(), Options())

    def text(self, point: SeriesPoint) -> bytes:
        return text_of(point).encode()

    def send(self, points: Sequence[SeriesPoint], timeout_s: float) -> None:
        for point in points:
            head, content = point
            assert self.samples.setdefault((head, time_ms_of(point)), content) == content

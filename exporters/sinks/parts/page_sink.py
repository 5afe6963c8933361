"""Base class of the sinks whose points are the series of /metrics."""

from collections.abc import Mapping
from typing import Any

from exporters.metrics_page.rendering import Options
from exporters.sinks.parts.page_parameters import external_labels, interval_s
from exporters.sinks.parts.page_samples import SeriesFormat, SeriesPoint
from exporters.sinks.parts.sink_url import Target
from exporters.sinks.parts.tick_encoder import TickEncoder
from exporters.sinks.sink import NodeTick, Sink


class PageSink(Sink[SeriesPoint]):
    """A sink that encodes a point for each series."""

    exports_page = True

    def __init__(self, target: Target, series_format: SeriesFormat, options: Options) -> None:
        """Encode series in a format, with the labels and the interval of a URL. Raises SinkUrlError."""
        self.name = target.name
        self._encoder = TickEncoder(series_format, options, external_labels(target), interval_s(target))

    def encode(self, tick: NodeTick) -> list[SeriesPoint]:
        return self._encoder.encode(tick)

    def replay(self, tick: NodeTick) -> None:
        self._encoder.replay(tick)

    def state(self) -> Mapping[str, Any]:
        return self._encoder.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self._encoder.restore(state)

    def size_bytes(self, point: SeriesPoint) -> int:
        head, content = point
        return len(head) + len(content)

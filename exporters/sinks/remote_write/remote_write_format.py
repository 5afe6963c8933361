"""The series of /metrics as points of remote write."""

from collections.abc import Mapping, Sequence

from collector.model.metric import Metric
from exporters.metrics_page.metric_family import UpperBounds, families_of
from exporters.sinks.parts.page_samples import Samples, SeriesPoint
from exporters.sinks.remote_write.encoded_series import points_of, stale_points
from exporters.sinks.remote_write.native_histograms import with_time
from exporters.sinks.remote_write.series_metadata import SeriesMetadata, family_metadata
from exporters.sinks.remote_write.series_samples import SeriesSamples


class RemoteWriteFormat:
    """Implements `exporters.sinks.parts.page_samples.SeriesFormat`; with `is_native`, adds native histograms."""

    def __init__(self, *, is_native: bool = False) -> None:
        self._is_native = is_native
        self.metadata: dict[str, SeriesMetadata] = {}
        """The metadata of the series so far, by name."""

    def renderer(
        self, catalogue: Mapping[str, Metric], upper_bounds: UpperBounds, common: Mapping[str, str]
    ) -> SeriesSamples:
        """Return a renderer for the series of a node; all of them get the labels in `common`."""
        self.metadata.update(family_metadata(families_of(catalogue).values()))
        return SeriesSamples(catalogue, upper_bounds, common, self.metadata, is_native=self._is_native)

    def points(self, samples: Samples, time_ms: int, _: int | None) -> list[SeriesPoint]:
        """Return the points of a tick."""
        native = [(head, with_time(message, time_ms)) for head, message in samples.messages.items()]
        return points_of(samples.heads, samples.values, time_ms) + native

    def ends(self, heads: Sequence[bytes], time_ms: int) -> list[SeriesPoint]:
        """Return points that mark the end of series."""
        return stale_points(heads, time_ms)

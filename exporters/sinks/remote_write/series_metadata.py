"""Types and help texts of series, for remote write 2.0."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from prometheus_client.metrics_core import Metric as PrometheusMetric

from exporters.metrics_page.metric_family import Family

# The numbers of Metadata.MetricType in io.prometheus.write.v2; 0 is "unspecified".
TYPES = {"counter": 1, "gauge": 2, "histogram": 3, "summary": 5, "info": 6}
HISTOGRAM_SUFFIXES = ("_bucket", "_count", "_sum")


class SeriesMetadata(NamedTuple):
    """The type of a series' metric family, and its help text."""

    kind: int = 0
    help: str = ""


def family_metadata(families: Iterable[Family]) -> Iterator[tuple[str, SeriesMetadata]]:
    """Yield the names of the families' series with their metadata."""
    for family in families:
        metadata = SeriesMetadata(TYPES.get(family.kind, 0), family.help)
        for suffix in ("", *HISTOGRAM_SUFFIXES) if family.kind == "histogram" else ("",):
            yield f"{family.name}{suffix}", metadata


def sample_metadata(family: PrometheusMetric) -> SeriesMetadata:
    """Return the metadata of a family of prometheus_client."""
    return SeriesMetadata(TYPES.get(family.type, 0), family.documentation)

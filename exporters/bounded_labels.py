"""Series for Prometheus and sinks, without labels whose values never come again.

Every compaction has an id of its own, and a store would keep a series for each. So these metrics are summed over their
other labels. Recordings, the line and the API keep the ids.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from collector.model.metric import Metric, Series

UNBOUNDED = frozenset({"id"})


class BoundedLabels:
    """A catalogue whose metrics have no unbounded labels, and the values to match."""

    def __init__(self, catalogue: Mapping[str, Metric]) -> None:
        self.catalogue = {
            name: replace(metric, labels=tuple(label for label in metric.labels if label not in UNBOUNDED))
            for name, metric in catalogue.items()
        }
        self._unbounded = {
            name: metric.labels for name, metric in catalogue.items() if not UNBOUNDED.isdisjoint(metric.labels)
        }

    def values(self, values: Mapping[Series, Any]) -> Mapping[Series, Any]:
        """Return values with numbers of unbounded series summed; other values of such series are left out."""
        if not any(series[0] in self._unbounded for series in values):
            return values
        bounded: dict[Series, Any] = {}
        for series, value in values.items():
            labels = self._unbounded.get(series[0])
            if labels is None:
                bounded[series] = value
            elif len(series) == len(labels) + 1 and isinstance(value, int | float):
                kept = (text for label, text in zip(labels, series[1:], strict=True) if label not in UNBOUNDED)
                summed = (series[0], *kept)
                bounded[summed] = bounded.get(summed, 0) + value
        return bounded

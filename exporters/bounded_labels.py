"""Removes labels with unbounded values from the series that go to Prometheus and sinks.

Every compaction has its own id, so a store would accumulate one series per compaction. Such a metric is therefore
summed into one series for each combination of its other labels. Recordings, the terminal and the API keep the ids.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from collector.model.metric import Metric, Series

UNBOUNDED = frozenset({"id"})


class BoundedLabels:
    """Holds a catalogue without unbounded labels, and converts values to match it."""

    def __init__(self, catalogue: Mapping[str, Metric]) -> None:
        self.catalogue = {
            name: replace(metric, labels=tuple(label for label in metric.labels if label not in UNBOUNDED))
            for name, metric in catalogue.items()
        }
        self._unbounded = {
            name: metric.labels for name, metric in catalogue.items() if not UNBOUNDED.isdisjoint(metric.labels)
        }

    def values(self, values: Mapping[Series, Any]) -> Mapping[Series, Any]:
        """Return the values, with numbers summed over unbounded labels; other values with such labels are dropped."""
        if self._unbounded.keys().isdisjoint({series[0] for series in values}):
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

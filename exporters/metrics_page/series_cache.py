"""Caches what does not change between ticks for each series of a metric, such as its name and labels as text."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from collector.model.metric import Metric, Series

T = TypeVar("T")


class SeriesCache(Generic[T]):
    """The items of the series that each metric had last."""

    def __init__(self, create: Callable[[Metric, Series], T]) -> None:
        """`create` returns the item of a series."""
        self._create = create
        self._by_metric: dict[str, tuple[Sequence[Series], list[T]]] = {}

    def __len__(self) -> int:
        return sum(len(items) for _, items in self._by_metric.values())

    def of(self, metric: Metric, series: Sequence[Series]) -> Sequence[T]:
        """Return the items of a metric's series, in the same order."""
        known_series, items = self._by_metric.get(metric.name, ((), []))
        if series != known_series:
            known = dict(zip(known_series, items, strict=True))
            items = [known[one] if one in known else self._create(metric, one) for one in series]
            self._by_metric[metric.name] = series, items
        return items

"""The series limit: if it is exceeded, whole metrics are left out, and reported by name and size."""

from collections.abc import Callable, Mapping

from collector.model.metric import Metric

DEFAULT_LIMIT = 10_000
# To prevent flapping, a metric that was left out returns only if the total, including it, is at most RETURN_SHARE of
# the limit.
RETURN_SHARE = 0.9


class SeriesLimit:
    """Selects the metrics to leave out; each is logged once."""

    def __init__(self, limit: int, catalogue: Mapping[str, Metric], log: Callable[[str], None]) -> None:
        self.limit = limit
        self._catalogue = catalogue
        self._log = log
        self._left_out: set[str] = set()
        self._logged: set[str] = set()

    def left_out(self, sizes: Mapping[str, int], others: int) -> dict[str, int]:
        """Return the metrics to leave out, each with its number of series.

        `sizes` holds the number of series of each metric; `others` is the number of series that are always present.
        Table metrics are left out first, then keyspace metrics, then all others; within each group, the largest first.
        A metric that is left out is replaced by one series that reports it.
        """
        everything = others + sum(sizes.values())
        if not self._left_out and everything <= self.limit:
            return {}
        present = sorted((name for name, size in sizes.items() if size), key=lambda name: self._rank(name, sizes[name]))
        total = others + sum(1 if name in self._left_out else sizes[name] for name in present)
        for name in present:
            if total > self.limit and name not in self._left_out:
                self._left_out.add(name)
                total += 1 - sizes[name]
        for name in reversed(present):
            if name in self._left_out and total - 1 + sizes[name] <= RETURN_SHARE * self.limit:
                self._left_out.discard(name)
                total += sizes[name] - 1
        left_out = {name: sizes[name] for name in present if name in self._left_out}
        self._report(left_out, everything)
        return left_out

    def _rank(self, name: str, size: int) -> tuple[int, int, str]:
        metric = self._catalogue.get(name)
        labels = metric.labels if metric else ()
        rank = next((index for index, label in enumerate(("table", "keyspace")) if label in labels), 2)
        return rank, -size, name

    def _report(self, left_out: Mapping[str, int], everything: int) -> None:
        new = [f"{name} ({size})" for name, size in left_out.items() if name not in self._logged]
        if new:
            self._logged.update(left_out)
            self._log(
                f"/metrics: {everything} series exceed the limit of {self.limit}: left out {', '.join(new)} "
                "(hint: raise the limit or read fewer tables)"
            )

"""How many series there may be: what is too much is left out by whole metrics, named and counted."""

from collections.abc import Callable, Mapping

from collector.model.metric import Metric

MOST = 10_000
# What was left out comes back where this share of the room is enough: nothing goes and comes around the limit.
ENOUGH = 0.9


class Budget:
    """Decides which metrics are left out, and sticks to it; `say` is told once of each."""

    def __init__(self, most: int, catalogue: Mapping[str, Metric], say: Callable[[str], None]) -> None:
        self.most = most
        self._catalogue = catalogue
        self._say = say
        self._left_out: set[str] = set()
        self._said: set[str] = set()

    def left_out(self, sizes: Mapping[str, int], others: int) -> dict[str, int]:
        """Return the metrics that have no room, with the number of their series, given that of all metrics'.

        `others` are series that there are in any case. Metrics of tables go first, then those of keyspaces, then
        others; of each the largest first. A metric that is left out takes the one series that says so.
        """
        there = sorted((name for name, size in sizes.items() if size), key=lambda name: self._rank(name, sizes[name]))
        total = others + sum(1 if name in self._left_out else sizes[name] for name in there)
        everything = others + sum(sizes.values())
        for name in there:
            if total > self.most and name not in self._left_out:
                self._left_out.add(name)
                total += 1 - sizes[name]
        for name in reversed(there):
            if name in self._left_out and total - 1 + sizes[name] <= ENOUGH * self.most:
                self._left_out.discard(name)
                total += sizes[name] - 1
        found = {name: sizes[name] for name in there if name in self._left_out}
        self._tell(found, everything)
        return found

    def _rank(self, name: str, size: int) -> tuple[int, int, str]:
        metric = self._catalogue.get(name)
        labels = metric.labels if metric else ()
        kind = next((place for place, label in enumerate(("table", "keyspace")) if label in labels), 2)
        return kind, -size, name

    def _tell(self, left_out: Mapping[str, int], everything: int) -> None:
        new = [f"{name} ({size})" for name, size in left_out.items() if name not in self._said]
        if new:
            self._said.update(left_out)
            self._say(
                f"/metrics: {everything} series where {self.most} are allowed: without {', '.join(new)}: "
                "raise the limit, or read fewer tables"
            )

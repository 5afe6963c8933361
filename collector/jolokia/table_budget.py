"""Many tables, few of them read: which are the most active, and what the others did together."""

from bisect import insort
from collections.abc import Iterable, Sequence
from heapq import nlargest
from itertools import takewhile

from collector.cassandra.tables import OPERATIONS, REMAINDERS
from collector.jolokia.mbean import Labels, MBeanRequest, mbean_requests
from collector.model.metric import ScrapeInterval, Series, Values
from collector.sampling.selection import Selection, Table

OTHERS = "(others)"
"""In place of a table's name: all tables of the keyspace that are not read."""

# Of the tables that are not read, so many are asked for their counts in one tick, each of them so often.
PER_TICK = 50
FIRST_S, PERIOD_S = 10.0, 60.0
# A table must be that much busier than one that is read to take its place: no coming and going.
LEAD = 1.25
# Before anything is known of the present, what was done since the node's start decides.
PAST = 1e-12


class Ranking:
    """Finds the most active tables: the counts of all are read in turn, a few in each tick."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self.active: frozenset[Table] = frozenset()
        self._queue: list[tuple[float, Table]] = []
        self._rivals: dict[Table, list[MBeanRequest]] = {}
        self._counts: dict[Table, tuple[int, float]] = {}
        self._scores: dict[Table, float] = {}

    def know(self, tables: Iterable[Table]) -> None:
        """Take the tables that there now are; those that are named are not in competition."""
        selection = self._selection
        rivals = [t for t in dict.fromkeys(tables) if selection.includes(t[0]) and not selection.names(*t)]
        if len(rivals) <= selection.tables or not selection.tables:
            for each in (self._queue, self._rivals, self._counts, self._scores):
                each.clear()
            self.active = frozenset(rivals) if selection.tables else frozenset()
            return
        before, self._rivals = self._rivals, {table: self._rivals.get(table, []) for table in rivals}
        self._counts = {table: last for table, last in self._counts.items() if table in self._rivals}
        self._scores = {table: score for table, score in self._scores.items() if table in self._rivals}
        # New ones go first: what was just created may be what the load is about.
        new = [(0.0, table) for table in rivals if table not in before]
        self._queue = new + [(due_s, table) for due_s, table in self._queue if table in self._rivals]
        self.active = self._best()

    def due(self, now_s: float) -> list[tuple[Table, MBeanRequest]]:
        """Return what to ask in this tick."""
        tables = [table for _, table in takewhile(lambda each: each[0] <= now_s, self._queue[:PER_TICK])]
        for table in tables:
            # Not for all of them beforehand: there may be thousands.
            self._rivals[table] = self._rivals[table] or _counts_of(table)
        return [(table, question) for table in tables for question in self._rivals[table]]

    def heard(self, answers: Sequence[tuple[Table, Values]], now_s: float) -> bool:
        """Take the counts that were answered; return whether other tables than before are now the most active."""
        counts: dict[Table, list[int]] = {}
        for table, values in answers:
            counts.setdefault(table, []).extend(value for value in values.values() if isinstance(value, int))
        del self._queue[: len(counts)]
        for table, found in counts.items():
            known = len(found) == len(self._rivals[table])
            insort(self._queue, (now_s + self._score(table, sum(found) if known else None, now_s), table))
        before = self.active
        if counts:
            self.active = self._best()
        return self.active != before

    def _score(self, table: Table, count: int | None, now_s: float) -> float:
        """Take what the table counts now, None where it does not say; return in how many seconds to ask it again."""
        last = self._counts.pop(table, None)
        if count is not None:
            self._counts[table] = (count, now_s)
        if count is None or last is None or count < last[0] or now_s <= last[1]:
            # What is known of it from before a restart holds until there is a new rate.
            self._scores.setdefault(table, PAST * (count or 0))
            return FIRST_S
        self._scores[table] = (count - last[0]) / (now_s - last[1])
        return PERIOD_S

    def forget(self) -> None:
        """Begin anew: the node counts from zero again."""
        self._counts.clear()
        self._queue = [(0.0, table) for _, table in self._queue]

    def _best(self) -> frozenset[Table]:
        if len(self._scores) < len(self._rivals):
            # Not before all have been heard: the first ones asked are not the most active.
            return self.active & self._rivals.keys()

        def rank(table: Table) -> tuple[float, bool]:
            is_read = table in self.active
            return self._scores[table] * (LEAD if is_read else 1.0), is_read

        return frozenset(nlargest(self._selection.tables, self._scores, key=rank))


def _counts_of(table: Table) -> list[MBeanRequest]:
    labels: list[Labels] = [
        {"keyspace": table[0], "table": table[1], "operation": operation} for operation in ("Read", "Write")
    ]
    return mbean_requests([OPERATIONS], {OPERATIONS.family: labels}, lambda *_: ScrapeInterval.TICK)


class Remainder:
    """What the tables of a keyspace did that are not read: its own counters without those of the tables that are.

    They count from the first reading on, and go on evenly when a table begins or ceases to be read. A keyspace may
    be read more rarely than its tables.
    """

    def __init__(self) -> None:
        self._keyspaces: dict[Series, int] = {}
        self._rest: dict[Series, int] = {}
        self._owed: dict[Series, int] = {}
        # Of each table: what it did since its keyspace was last read, from one tick to the next, and its counter,
        # None when it was not read in the last tick: what it does then is the others'.
        self._tables: dict[Series, tuple[int, int | None]] = {}

    def of(self, values: Values) -> Values:
        """Return the counters of the others, for the keyspaces that are among what was read in a tick."""
        now = {series: value for series, value in values.items() if series[0] in _NAMES and isinstance(value, int)}
        for series in {*self._tables, *(each for each in now if each[0] not in REMAINDERS)}:
            increase, last = self._tables.get(series, (0, None))
            value = now.get(series)
            more = 0 if value is None or last is None else max(value - last, 0)
            self._tables[series] = (increase + more, value)
        found: Values = {}
        for series, value in now.items():
            if series[0] in REMAINDERS:
                found[REMAINDERS[series[0]], series[1], OTHERS, series[2]] = self._others(series, value)
        return found

    def _others(self, series: Series, value: int) -> int:
        """Return the counter of the others of this keyspace."""
        name, keyspace, operation = series
        shown = 0
        for table, (increase, last) in list(self._tables.items()):
            if (table[0], table[1], table[3]) == (REMAINDERS[name], keyspace, operation):
                shown += increase
                self._tables[table] = (0, last)
                if last is None:
                    del self._tables[table]
        before = self._keyspaces.get(series)
        self._keyspaces[series] = value
        if before is None or value < before:
            return self._rest.setdefault(series, 0)
        # A table is read a moment before or after its keyspace: what seems too much now is owed to the next time.
        rest = value - before - shown + self._owed.get(series, 0)
        self._owed[series] = min(rest, 0)
        self._rest[series] += max(rest, 0)
        return self._rest[series]


_NAMES = {*REMAINDERS, *REMAINDERS.values()}

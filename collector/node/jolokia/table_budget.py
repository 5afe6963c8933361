"""Selects the most active tables if there are too many to read, and counts the operations of all others."""

from bisect import insort
from collections.abc import Iterable, Sequence
from heapq import nlargest
from itertools import takewhile

from collector.model.mbean import Labels, MBeanRequest, mbean_requests
from collector.model.metric import ScrapeInterval, Series, Values
from collector.node.metrics.tables import OPERATIONS, REMAINDERS
from collector.node.selection import Selection, Table

OTHERS = "(others)"
"""The table name that stands for all of a keyspace's tables that are not read."""

# The maximum number of tables that are read in one tick to rank them.
PER_TICK = 50
# The time until a table's second reading, and the time between later readings.
FIRST_S, PERIOD_S = 10.0, 60.0
# A table replaces an active one only if it is more than LEAD times as busy, so that the selection is stable.
LEAD = 1.25
# Until a table has a rate, its score is its total since the node started, multiplied by TOTAL_WEIGHT.
TOTAL_WEIGHT = 1e-12


class Ranking:
    """Finds the most active tables by reading the operation counts of all tables in turn, a few in each tick."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self.active: frozenset[Table] = frozenset()
        self._queue: list[tuple[float, Table]] = []
        self._candidates: dict[Table, list[MBeanRequest]] = {}
        self._counts: dict[Table, tuple[int, float]] = {}
        self._scores: dict[Table, float] = {}

    def set_tables(self, tables: Iterable[Table]) -> None:
        """Set the existing tables. Those selected by name are not ranked, because they are always read."""
        selection = self._selection
        candidates = [t for t in dict.fromkeys(tables) if selection.includes(t[0]) and not selection.names(*t)]
        if len(candidates) <= selection.tables or not selection.tables:
            for collection in (self._queue, self._candidates, self._counts, self._scores):
                collection.clear()
            self.active = frozenset(candidates) if selection.tables else frozenset()
            return
        before, self._candidates = self._candidates, {table: self._candidates.get(table, []) for table in candidates}
        self._counts = {table: last for table, last in self._counts.items() if table in self._candidates}
        self._scores = {table: score for table, score in self._scores.items() if table in self._candidates}
        # New tables come first, because the load may target a table that was just created.
        new = [(0.0, table) for table in candidates if table not in before]
        self._queue = new + [(due_s, table) for due_s, table in self._queue if table in self._candidates]
        self.active = self._most_active()

    def due(self, now_s: float) -> list[tuple[Table, MBeanRequest]]:
        tables = [table for _, table in takewhile(lambda entry: entry[0] <= now_s, self._queue[:PER_TICK])]
        for table in tables:
            # Requests are created on first use, because there may be thousands of tables.
            self._candidates[table] = self._candidates[table] or _count_requests(table)
        return [(table, request) for table in tables for request in self._candidates[table]]

    def update(self, readings: Sequence[tuple[Table, Values]], now_s: float) -> bool:
        """Process the counts that were read; return whether the set of active tables has changed."""
        counts: dict[Table, list[int]] = {}
        for table, values in readings:
            counts.setdefault(table, []).extend(value for value in values.values() if isinstance(value, int))
        del self._queue[: len(counts)]
        for table, operations in counts.items():
            is_complete = len(operations) == len(self._candidates[table])
            insort(self._queue, (now_s + self._score(table, sum(operations) if is_complete else None, now_s), table))
        before = self.active
        if counts:
            self.active = self._most_active()
        return self.active != before

    def _score(self, table: Table, count: int | None, now_s: float) -> float:
        """Update a table's score from its count (None if unknown); return the time until its next read."""
        last = self._counts.pop(table, None)
        if count is not None:
            self._counts[table] = (count, now_s)
        if count is None or last is None or count < last[0] or now_s <= last[1]:
            # After a restart, the old score remains valid until there is a new rate.
            self._scores.setdefault(table, TOTAL_WEIGHT * (count or 0))
            return FIRST_S
        self._scores[table] = (count - last[0]) / (now_s - last[1])
        return PERIOD_S

    def reset(self) -> None:
        """Discard all counts, because the node's counters have started again from zero."""
        self._counts.clear()
        self._queue = [(0.0, table) for _, table in self._queue]

    def _most_active(self) -> frozenset[Table]:
        if len(self._scores) < len(self._candidates):
            # Wait until every table has a score, because the tables read first are not necessarily the most active.
            return self.active & self._candidates.keys()

        def rank(table: Table) -> tuple[float, bool]:
            is_active = table in self.active
            return self._scores[table] * (LEAD if is_active else 1.0), is_active

        return frozenset(nlargest(self._selection.tables, self._scores, key=rank))


def _count_requests(table: Table) -> list[MBeanRequest]:
    labels: list[Labels] = [
        {"keyspace": table[0], "table": table[1], "operation": operation} for operation in ("Read", "Write")
    ]
    return mbean_requests([OPERATIONS], {OPERATIONS.family: labels}, lambda *_: ScrapeInterval.TICK)


class Remainder:
    """Counts the operations of tables that are not read: the keyspace's counters minus those of the tables read.

    The counters start from zero at the first read, and do not jump when a table starts or stops being read. A
    keyspace may be read less often than its tables.
    """

    def __init__(self) -> None:
        self._keyspaces: dict[Series, int] = {}
        self._remainders: dict[Series, int] = {}
        self._deficits: dict[Series, int] = {}
        # Each table's increase since its keyspace was last read, and its counter (None if it was not read in the last
        # tick). Operations during a tick in which the table was not read are counted as those of the other tables.
        self._tables: dict[Series, tuple[int, int | None]] = {}

    def counters(self, values: Values) -> Values:
        """Return the other tables' counters for each keyspace in `values`, the values read in one tick."""
        read = {series: value for series, value in values.items() if series[0] in _NAMES and isinstance(value, int)}
        for series in {*self._tables, *(series for series in read if series[0] not in REMAINDERS)}:
            increase, last = self._tables.get(series, (0, None))
            value = read.get(series)
            growth = 0 if value is None or last is None else max(value - last, 0)
            self._tables[series] = (increase + growth, value)
        counters: Values = {}
        for series, value in read.items():
            if series[0] in REMAINDERS:
                counters[REMAINDERS[series[0]], series[1], OTHERS, series[2]] = self._remainder(series, value)
        return counters

    def _remainder(self, series: Series, value: int) -> int:
        """Return the updated counter of a keyspace's other tables; `value` is the keyspace's own counter."""
        name, keyspace, operation = series
        tables_increase = 0
        for table, (increase, last) in list(self._tables.items()):
            if (table[0], table[1], table[3]) == (REMAINDERS[name], keyspace, operation):
                tables_increase += increase
                self._tables[table] = (0, last)
                if last is None:
                    del self._tables[table]
        before = self._keyspaces.get(series)
        self._keyspaces[series] = value
        if before is None or value < before:
            return self._remainders.setdefault(series, 0)
        # A table and its keyspace are read at slightly different times, so the remainder may be negative; it is then
        # subtracted from the next one.
        remainder = value - before - tables_increase + self._deficits.get(series, 0)
        self._deficits[series] = min(remainder, 0)
        self._remainders[series] += max(remainder, 0)
        return self._remainders[series]


_NAMES = {*REMAINDERS, *REMAINDERS.values()}

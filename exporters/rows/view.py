"""The view: the columns that the user selected, and the metrics that they read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from collector.model.snapshot import JOLOKIA_SOURCE, NODETOOL_OPERATIONS_SOURCE, Event, Sample
from collector.node.catalogue import CATALOGUE
from collector.node.metrics.requests import OPERATIONS
from exporters.rows.columns import (
    DISK,
    INTERFACE,
    PENDING,
    USER_WITH_NICE,
    Column,
    cpu_columns,
    derived_columns,
    disk_columns,
    network_columns,
    number,
    shown_columns,
)
from exporters.rows.operation_columns import Operations, more_operation_columns, operation_columns
from exporters.rows.table_rows import NEEDS as TABLE_METRICS

DECAYED_MARK = "~"
_OPERATION_SOURCES = (JOLOKIA_SOURCE, NODETOOL_OPERATIONS_SOURCE)
_DONE, _SIZE = "cassandra_compaction_progress", "cassandra_compaction_size"
# Kinds of events about the sampling itself; all others come from the node's log or from load test runs.
_ROW_EVENTS = {"missed", "suspended", "no_answer", "restart", "disagreement", "log_pattern"}
_NICE = "cpu_nice_pct"
_CACHES = ("key_cache_hit_pct", "row_cache_hit_pct", "read_stage_active", "read_stage_pending")
_READ_REPAIR = ("read_repairs_per_s",)
# Columns that may show decaying percentiles instead of interval percentiles.
_MAY_DECAY = {f"{operation.word}_{name}_ms" for operation in OPERATIONS for name in ("p50", "p95", "p99")}
_MEANS = {"read_mean_ms", "write_mean_ms"}
_NOT_IN_TEXT = {"read_p50_ms", "read_max_ms", "write_p50_ms", "write_max_ms", "compactions_pending"}


@dataclass(frozen=True)
class View:
    """The user's selection, with the selected or discovered disk and interface.

    time     header of the first text column: "Time", "Epoch", or "" to omit the column.
    tables   whether individual tables are shown below the row.
    picked   names of the columns; () for the usual ones.
    source   the transport through which the node is read.
    decayed  whether decaying percentiles are shown because interval percentiles are unavailable.
    """

    operations: Operations = field(default_factory=Operations)
    disk: str = ""
    interface: str = ""
    time: str = ""
    percentiles: bool = False
    compactions: bool = False
    caches: bool = False
    read_repair: bool = False
    tables: bool = False
    wide: bool = False
    picked: tuple[str, ...] = ()
    source: str = ""
    decayed: bool = False

    @cached_property
    def columns(self) -> list[Column]:
        """The columns of JSON and CSV: those picked, or the stable ones, the requested ones and, with `wide`, all."""
        return [self._by_name[name] for name in self.picked] or [*self.promised, *self.more]

    @cached_property
    def more(self) -> list[Column]:
        """The columns after the stable ones; new columns go here, so that the stable ones keep their places in CSV."""
        known = {column.name for column in self.promised}
        wanted = {_NICE, *(_CACHES if self.caches else ()), *(_READ_REPAIR if self.read_repair else ())}
        wanted |= {column.name for column in more_operation_columns(self.operations)}
        return [c for c in self._extra() if c.name not in known and (self.wide or c.name in wanted)]

    @property
    def devices(self) -> Mapping[str, str]:
        """The names of the watched disk and interface, keyed by cell name."""
        return {DISK: self.disk, INTERFACE: self.interface}

    @cached_property
    def text_columns(self) -> list[Column]:
        """The columns of the terminal's row: those picked, all (`wide`), or the classic ones in their fixed order."""
        if self.picked:
            user = {} if _NICE in self.picked else {USER_WITH_NICE.name: USER_WITH_NICE}
            return [self._marked((self._by_name | user)[name]) for name in self.picked]
        if self.wide:
            return [self._marked(column) for column in self.columns]
        tails = [column for column in self.promised if "_p9" in column.name]
        rest = [column for column in self.promised if column.name not in _NOT_IN_TEXT and column not in tails]
        operations = [column for column in rest if column.name.startswith(("read", "write"))]
        machine = [
            USER_WITH_NICE if column.name == USER_WITH_NICE.name else column
            for column in rest
            if column not in operations
        ]
        caches = [self._by_name[name] for name in _CACHES] if self.caches else []
        repairs = [self._by_name[name] for name in _READ_REPAIR] if self.read_repair else []
        tails = sorted(tails, key=_tail_order) if self.percentiles else []
        return [self._marked(column) for column in (*operations, *caches, *machine, *repairs, *tails)]

    def _marked(self, column: Column) -> Column:
        """Return the column, with a mark in its header if it shows decaying values."""
        may = column.name in _MAY_DECAY or (
            column.name in _MEANS and self.source == "nodetool" and self.operations.table
        )
        return replace(column, header=f"{DECAYED_MARK}{column.header}") if self.decayed and may else column

    def metrics(self, columns: Iterable[Column]) -> frozenset[str]:
        """Return the names of the metrics that `columns` and the view's compactions and tables need."""
        needed = {name for column in columns for name in column.needs}
        needed |= {*_PENDING.needs, _DONE, _SIZE} if self.compactions else set()
        return frozenset(needed | (TABLE_METRICS if self.tables else set()))

    @cached_property
    def promised(self) -> list[Column]:
        """The columns whose names and order are stable."""
        usual = [operation for operation in OPERATIONS if operation.is_usual]
        return [
            *(column for operation in usual for column in operation_columns(self.operations, operation)),
            *(column for column in cpu_columns() if column.name != _NICE),
            *disk_columns(self.disk)[:4],
            *network_columns(self.interface)[:2],
            _PENDING,
        ]

    @property
    def _by_name(self) -> dict[str, Column]:
        """All columns by their names."""
        return {column.name: column for column in (*self._extra(), *self.promised)}

    def _extra(self) -> Iterable[Column]:
        yield from cpu_columns()
        yield from disk_columns(self.disk)
        yield from network_columns(self.interface)
        yield from derived_columns()
        yield from shown_columns(CATALOGUE.values())
        yield from more_operation_columns(self.operations)


_PENDING = replace(*shown_columns([CATALOGUE[PENDING[0]]]), keep=4)


def _tail_order(column: Column) -> tuple[bool, bool]:
    # Scripts may rely on the order of columns: read p99, read p95, write p99, write p95.
    return column.name.startswith("write"), "_p95" in column.name


def interval_s(sample: Sample) -> float | None:
    """Return the seconds covered by Cassandra's rates, or by other rates if it has none; None if there are no rates.

    If Cassandra did not answer for some ticks, this includes the gap, because its next rates cover the gap as well.
    """
    known = sample.elapsed_s
    for source in (*_OPERATION_SOURCES, "cpu"):
        if source in known:
            return known[source]
    return min(known.values(), default=None)


def has_news(sample: Sample) -> bool:
    """Return whether Cassandra reported anything in this interval."""
    return any(source in sample.elapsed_s for source in _OPERATION_SOURCES)


def without_running(sample: Sample) -> Sample:
    """Return the sample without running compactions, whose progress cannot be averaged."""
    values = {series: value for series, value in sample.values.items() if series[0] not in (_DONE, _SIZE)}
    return replace(sample, values=values)


def with_last_known(sample: Sample) -> Sample:
    """Return the sample with last known values where it has no current ones, for display."""
    return replace(sample, values={**sample.last_known, **sample.values}) if sample.last_known else sample


def problems(sample: Sample) -> str:
    """Return the events about the sampling itself as one line; "" if there are none."""
    return " ".join("; ".join(event.text for event in sample.events if event.kind in _ROW_EVENTS).split())


def logged(events: Iterable[Event]) -> list[Event]:
    """Return the events from the node's log and from load test runs."""
    return [event for event in events if event.kind not in _ROW_EVENTS]


def events_text(sample: Sample) -> str:
    """Return all events as one line, separated by semicolons."""
    if not sample.events:
        return ""
    return "; ".join(
        filter(None, [problems(sample), *(" ".join(event.text.split()) for event in logged(sample.events))])
    )


def running(sample: Sample) -> list[dict[str, Any]]:
    """Return the type, keyspace, table and done_pct of each running compaction, the most advanced first."""
    tasks = []
    for series, size in sample.values.items():
        if series[0] == _SIZE and len(series) == 5 and isinstance(size, float) and size:
            done = number(sample, (_DONE, *series[1:])) or 0.0
            _, keyspace, table, kind = series[1:]
            tasks.append((100 * done / size, {"type": kind, "keyspace": keyspace, "table": table}))
    tasks.sort(key=lambda task: -task[0])
    return [{**task, "done_pct": round(done_pct, 1)} for done_pct, task in tasks]

"""What a line shows: which columns, made from which metrics."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from collector.catalogue import CATALOGUE
from collector.jmx import NodeSource
from collector.model import Sample
from exporters.columns import (
    Column,
    Operations,
    cpu_columns,
    derived_columns,
    disk_columns,
    network_columns,
    number,
    operation_columns,
    shown_columns,
)

_DONE, _SIZE = "cassandra_compaction_progress", "cassandra_compaction_size"
_WIDE_ONLY = {"cpu_nice_pct"}
_NOT_IN_TEXT = {"read_p50_ms", "read_max_ms", "write_p50_ms", "write_max_ms", "compactions_pending"}


@dataclass(frozen=True)
class View:
    """The user's choice, with the disk and interface that were chosen or found.

    time  header of the first column of text: "Time", "Epoch", or "" for none.
    """

    operations: Operations = field(default_factory=Operations)
    disk: str = ""
    interface: str = ""
    time: str = ""
    percentiles: bool = False
    compactions: bool = False
    wide: bool = False

    @cached_property
    def columns(self) -> list[Column]:
        """Every column of JSON and CSV: those whose names are promised, and with `wide` all others."""
        columns = list(self._promised)
        if self.wide:
            known = {column.name for column in columns}
            columns += [column for column in self._extra() if column.name not in known]
        return columns

    @cached_property
    def text_columns(self) -> list[Column]:
        """The columns of the terminal's row."""
        if self.wide:
            return self.columns
        tails = [column for column in self._promised if "_p9" in column.name]
        rest = [column for column in self._promised if column.name not in _NOT_IN_TEXT and column not in tails]
        return rest + (sorted(tails, key=_tail_order) if self.percentiles else [])

    def metrics(self, columns: Iterable[Column]) -> frozenset[str]:
        """Return the names of the metrics that a view with these columns needs."""
        needed = {name for column in columns for name in column.needs}
        return frozenset(needed | ({*_PENDING.needs, _DONE, _SIZE} if self.compactions else set()))

    @cached_property
    def _promised(self) -> list[Column]:
        return [
            *operation_columns(self.operations, "Read", "Rd"),
            *operation_columns(self.operations, "Write", "Wrt"),
            *(column for column in cpu_columns() if column.name not in _WIDE_ONLY),
            *disk_columns(self.disk)[:4],
            *network_columns(self.interface)[:2],
            _PENDING,
        ]

    def _extra(self) -> Iterable[Column]:
        yield from cpu_columns()
        yield from disk_columns(self.disk)
        yield from network_columns(self.interface)
        yield from derived_columns()
        yield from shown_columns(CATALOGUE.values())


_PENDING = Column(
    "compactions_pending",
    "CmpPnd",
    lambda sample: number(sample, ("cassandra_compaction_pending",)),
    frozenset(("cassandra_compaction_pending",)),
    0,
    4,
)


def _tail_order(column: Column) -> tuple[bool, bool]:
    # As the old script had them: read 99th 95th, write 99th 95th.
    return column.name.startswith("write"), "_p95" in column.name


def interval_s(sample: Sample) -> float | None:
    """Return how long the row's rates cover: those of Cassandra, else those of the machine.

    After ticks without an answer Cassandra's cover the gap too, so that rate times interval is always what
    happened.
    """
    known = sample.elapsed_s
    return known.get(NodeSource.name, known.get("cpu", min(known.values(), default=None)))


def said(sample: Sample) -> str:
    """Return what is to be said of the row, in one line; "" when nothing is."""
    return " ".join("; ".join(event.text for event in sample.events).split())


def running(sample: Sample) -> list[dict[str, Any]]:
    """Return the compactions that run, the furthest first: type, keyspace, table and done_pct of each."""
    found = []
    for series, size in sample.values.items():
        if series[0] == _SIZE and isinstance(size, float) and size:
            done = number(sample, (_DONE, *series[1:])) or 0.0
            _, keyspace, table, kind = series[1:]
            found.append((100 * done / size, {"type": kind, "keyspace": keyspace, "table": table}))
    found.sort(key=lambda each: -each[0])
    return [{**what, "done_pct": round(done_pct, 1)} for done_pct, what in found]

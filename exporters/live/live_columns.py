"""What the live view can show of a node: the wide view's columns and a few more, each node's as a row of numbers.

A row is an array with one number for each of `COLUMNS`, NaN for what is not known: 300 nodes over minutes are many.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import isfinite, isnan, nan

from collector.catalogue import CATALOGUE
from collector.cluster.aggregation import WATCHED, is_own_sum
from collector.cluster.live.sanitise import OPERATION_MODE
from collector.model.metric import Kind
from collector.model.sample import Sample
from exporters.line.columns import Cell, Column, number, per_s, times
from exporters.line.operation_columns import Operations
from exporters.line.table_rows import NEEDS as TABLES
from exporters.line.view import View, with_held

Cells = Sequence[float]

_UNREACHABLE = "cassandra_endpoints_unreachable"
_UNAVAILABLES = "cassandra_client_request_unavailables_total"
_HEAP, _HEAP_MAX = "cassandra_jvm_heap_used_bytes", "cassandra_jvm_heap_max_bytes"


def _unavailables(sample: Sample) -> Cell:
    found = [rate for word in ("Read", "Write") if (rate := per_s(sample, (_UNAVAILABLES, word))) is not None]
    return sum(found) if found else None


def _heap_pct(sample: Sample) -> Cell:
    used, most = number(sample, (_HEAP,)), number(sample, (_HEAP_MAX,))
    return 100 * used / most if used is not None and most and most > 0 else None


_MORE = (
    Column("unavailables_per_s", "Unavl", _unavailables, frozenset((_UNAVAILABLES,)), 1, 4),
    Column("heap_pct", "Heap%", _heap_pct, frozenset((_HEAP, _HEAP_MAX)), 1, 5),
    Column(
        "peers_unreachable", "Unrch", lambda s: times(1, number(s, (_UNREACHABLE,))), frozenset((_UNREACHABLE,)), 0, 3
    ),
)


@lru_cache(maxsize=2)
def columns_of(*, local: bool) -> tuple[Column, ...]:
    """Return the columns of a node; `local` for one of which only the local reads and writes are known."""
    wide = View(Operations(local=local), disk=WATCHED, interface=WATCHED, wide=True).columns
    return (*(replace(each, header=each.header.removeprefix("watched")) for each in wide), *_MORE)


COLUMNS = columns_of(local=False)
PLACES: Mapping[str, int] = {column.name: place for place, column in enumerate(COLUMNS)}
NEEDS = frozenset(need for column in COLUMNS for need in column.needs)
SUMMED = frozenset(name for name in NEEDS if CATALOGUE[name].kind is Kind.GAUGE and is_own_sum(CATALOGUE[name]))
"""Gauges in the columns whose values add up across nodes."""
_DECAYED = "cassandra_client_request_decayed_seconds"
NOTHING: Cells = array("d", [nan] * len(COLUMNS))


EVERY = frozenset(PLACES)


def cells_of(sample: Sample, *, local: bool = False, names: frozenset[str] = EVERY) -> Cells:
    """Return the row of a node, or of the cluster: what is new, and the last known values of slower sources.

    Only the columns with these names are worked out.
    """
    columns, shown = columns_of(local=local), with_held(sample)
    return array("d", [_number(each.of(shown)) if each.name in names else nan for each in columns])


def needs(names: Iterable[str]) -> frozenset[str]:
    """Return the metrics that columns of these names are made of, and the node's mode."""
    found = {need for name in names for need in COLUMNS[PLACES[name]].needs}
    local = {need for name in names for need in columns_of(local=True)[PLACES[name]].needs}
    return frozenset({OPERATION_MODE[0], *found, *local})


def shown_by(metrics: frozenset[str]) -> frozenset[str]:
    """Return the names of the columns for which nothing but these metrics is needed."""
    return frozenset(name for name in PLACES if needs([name]) <= metrics)


def patterns(metrics: Iterable[str]) -> list[str]:
    """Return what to ask an agent for: names, and for groups that are asked for together one pattern."""
    groups = (
        "node_disk_",
        "node_network_",
        "node_pressure_",
        "cassandra_table_operation",
        "cassandra_keyspace_operation",
    )
    found = {next((f"{group}*" for group in groups if name.startswith(group)), name) for name in metrics}
    return sorted(found)


def value(cells: Cells, name: str) -> float | None:
    """Return the number in the column of this name; None for what is not known."""
    found = cells[PLACES[name]]
    return None if isnan(found) else found


def needed(values: Mapping[str, object]) -> dict[str, object]:
    """Return what an agent's sample says of series that columns are made of: of many a metric only few are."""
    return {name: _chosen(name, rows) if name in _LABELS else rows for name, rows in values.items()}


def _chosen(name: str, rows: object) -> object:
    wanted = _LABELS[name]
    return (
        [row for row in rows if isinstance(row, list) and tuple(row[:-1]) in wanted] if isinstance(rows, list) else rows
    )


def _labels() -> dict[str, set[tuple[object, ...]]]:
    """Return of metrics with labels which label values are shown, where that is written down."""
    found: dict[str, set[tuple[object, ...]]] = {}
    several = {need for column in COLUMNS if not column.alone for need in column.needs}
    for column in COLUMNS:
        if len(column.alone) > 1 and column.alone[0] not in several:
            found.setdefault(column.alone[0], set()).add(column.alone[1:])
    operations = {need for name in ("reads_per_s", "read_p99_ms") for need in COLUMNS[PLACES[name]].needs}
    of_requests: set[tuple[object, ...]] = {("Read",), ("Write",)}
    return found | dict.fromkeys({*operations, _UNAVAILABLES} - {_DECAYED}, of_requests)


def is_whole(cells: Cells) -> bool:
    """Return whether anything is known of what clients asked for: of a first interval there are no rates yet."""
    return not all(isnan(cells[PLACES[name]]) for name in ("reads_per_s", "writes_per_s"))


def _number(cell: Cell) -> float:
    return cell if isinstance(cell, int | float) and isfinite(cell) else nan


TABLE_METRICS = frozenset(TABLES)


_LABELS = _labels()

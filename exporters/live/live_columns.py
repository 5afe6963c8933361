"""Columns of `casstat top`: those of the wide view and a few more, as rows of numbers.

A row is an array with a number for each of `COLUMNS`, NaN for an absent value, so that several minutes of data
from 300 nodes fit into memory.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import isfinite, isnan, nan

from collector.live.interval_assembler import OPERATION_MODE
from collector.merge.aggregation import is_summed_over_nodes
from collector.model.metric import Kind, Series
from collector.model.snapshot import WATCHED, Sample
from collector.node.catalogue import CATALOGUE
from collector.node.metrics.requests import COUNTED, ERRORS, OPERATIONS, Operation
from exporters.rows.columns import (
    Cell,
    Column,
    Formula,
    Gauge,
    JointFormula,
    Percentage,
    SumOfRates,
    number,
    percentages,
)
from exporters.rows.operation_columns import LatencyQuantile, Operations, latency_quantiles
from exporters.rows.table_rows import NEEDS as TABLES
from exporters.rows.view import View, with_last_known

Cells = Sequence[float]

_UNREACHABLE = "cassandra_endpoints_unreachable"
_HEAP, _HEAP_MAX = "cassandra_jvm_heap_used_bytes", "cassandra_jvm_heap_max_bytes"


def _heap_pct(sample: Sample) -> Cell:
    used, most = number(sample, (_HEAP,)), number(sample, (_HEAP_MAX,))
    return 100 * used / most if used is not None and most and most > 0 else None


def _errors(name: str, header: str, text: str) -> Column:
    metric = ERRORS[name]
    rates = SumOfRates(tuple((metric, operation.scope) for operation in COUNTED))
    return Column(f"{name}_per_s", header, rates, frozenset((metric,)), keep=4, help=text)


_HEAP_TEXT = "Used heap, including garbage, % of its maximum"
_PEERS_TEXT = "Number of nodes that this node cannot reach"
_MORE = (
    _errors("timeouts", "Tmo", "Requests per second that timed out on the coordinator"),
    _errors("unavailables", "Unavl", "Requests per second that were rejected because too few replicas were up"),
    Column("heap_pct", "Heap%", _heap_pct, frozenset((_HEAP, _HEAP_MAX)), help=_HEAP_TEXT),
    Column("peers_unreachable", "Unrch", Gauge((_UNREACHABLE,)), frozenset((_UNREACHABLE,)), 0, 3, help=_PEERS_TEXT),
)


@lru_cache(maxsize=2)
def columns_of(*, local: bool) -> tuple[Column, ...]:
    """Return the columns; `local` selects those for a node that reports only local reads and writes."""
    wide = View(Operations(local=local), disk=WATCHED, interface=WATCHED, wide=True).columns
    return (*(replace(column, header=column.header.removeprefix("watched")) for column in wide), *_MORE)


COLUMNS = columns_of(local=False)
COLUMN_INDEX: Mapping[str, int] = {column.name: index for index, column in enumerate(COLUMNS)}
"""Indexes into a row, keyed by column name."""
NEEDS = frozenset(need for column in COLUMNS for need in column.needs)
SUMMED = frozenset(
    name for name in NEEDS if CATALOGUE[name].kind is Kind.GAUGE and is_summed_over_nodes(CATALOGUE[name])
)
"""Gauges that the columns read and that are summed across nodes."""
_GROUPS = ("node_disk_", "node_network_", "node_pressure_", "cassandra_table_operation", "cassandra_keyspace_operation")
_DECAYED = "cassandra_client_request_decayed_seconds"
NOTHING: Cells = array("d", [nan] * len(COLUMNS))


EVERY = frozenset(COLUMN_INDEX)


def cells_of(sample: Sample, *, local: bool = False, names: frozenset[str] = EVERY) -> Cells:
    """Return a sample's row, with the last known values of sources that do not report on every tick.

    Only the columns in `names` are computed; the others are NaN.
    """
    cells, shown = array("d", NOTHING), with_last_known(sample)
    formulas, joint_formulas = _formulas(local, names)
    for index, formula in formulas:
        cells[index] = _number(formula(shown))
    for indices, joint_formula in joint_formulas:
        for index, cell in zip(indices, joint_formula(shown), strict=True):
            cells[index] = _number(cell)
    return cells


@lru_cache(maxsize=16)
def _formulas(
    local: bool, names: frozenset[str]
) -> tuple[Sequence[tuple[int, Formula]], Sequence[tuple[Sequence[int], JointFormula]]]:
    """Return the formulas of the columns in `names` with the columns' indices; some are computed together."""
    single: list[tuple[int, Formula]] = []
    shares: dict[Sequence[Series], dict[int, Percentage]] = {}
    quantiles: dict[tuple[Operations, str], dict[int, LatencyQuantile]] = {}
    for index, column in enumerate(columns_of(local=local)):
        formula = column.of
        if column.name not in names:
            continue
        if isinstance(formula, Percentage):
            shares.setdefault(formula.series, {})[index] = formula
        elif isinstance(formula, LatencyQuantile):
            quantiles.setdefault((formula.operations, formula.operation), {})[index] = formula
        else:
            single.append((index, formula))
    joint = [(list(group), percentages(list(group.values()))) for group in shares.values()]
    joint += [(list(group), latency_quantiles(list(group.values()))) for group in quantiles.values()]
    return single, joint


def needs(names: Iterable[str]) -> frozenset[str]:
    """Return the names of the metrics that these columns read, and the name of the operation mode's metric."""
    coordinated = {need for name in names for need in COLUMNS[COLUMN_INDEX[name]].needs}
    local = {need for name in names for need in columns_of(local=True)[COLUMN_INDEX[name]].needs}
    return frozenset({OPERATION_MODE[0], *coordinated, *local})


def shown_by(metrics: frozenset[str]) -> frozenset[str]:
    """Return the names of the columns that can be computed from these metrics."""
    return frozenset(name for name in COLUMN_INDEX if needs([name]) <= metrics)


def selectors(metrics: Iterable[str]) -> list[str]:
    """Return selectors that request the series of these metrics from an agent; large groups share a selector.

    They select at least the series that the columns read. Other series do not affect the columns.
    """
    return sorted({_selector(metric) for metric in metrics})


def _selector(metric: str) -> str:
    if metric in _LABELS:
        values_by_label = zip(CATALOGUE[metric].labels, zip(*_LABELS[metric], strict=True), strict=True)
        matchers = (f'{label}=~"{"|".join(dict.fromkeys(values))}"' for label, values in values_by_label)
        return f"{metric}{{{','.join(matchers)}}}"
    return next((f"{group}*" for group in _GROUPS if metric.startswith(group)), metric)


def value(cells: Cells, name: str) -> float | None:
    """Return a column's number; None if it is absent."""
    cell = cells[COLUMN_INDEX[name]]
    return None if isnan(cell) else cell


def _labels() -> dict[str, list[list[str]]]:
    """Return the label values of the series that the columns read, for each metric that they read only in part."""
    labels: dict[str, list[list[str]]] = {}
    several = {need for column in COLUMNS if not column.alone for need in column.needs}
    for column in COLUMNS:
        if len(column.alone) > 1 and column.alone[0] not in several:
            labels.setdefault(column.alone[0], []).append(list(column.alone[1:]))
    operations = {need for name in ("reads_per_s", "read_p99_ms") for need in COLUMNS[COLUMN_INDEX[name]].needs}
    scopes = [[operation.scope] for operation in OPERATIONS]
    return labels | dict.fromkeys({*operations, *ERRORS.values()} - {_DECAYED}, scopes)


def other_operations(cells: Cells) -> list[Operation]:
    """Return the operations other than reads and writes that occur, or fail, in a row."""
    return [
        operation
        for operation in OPERATIONS
        if not operation.is_usual
        and (value(cells, f"{operation.plural}_per_s") or value(cells, f"{operation.word}_errors_per_s"))
    ]


def is_whole(cells: Cells) -> bool:
    """Return whether the read or write rate is known; the first interval has no rates."""
    return not all(isnan(cells[COLUMN_INDEX[name]]) for name in ("reads_per_s", "writes_per_s"))


# Faster than `int | float`, which Python would build for each cell.
_NUMBERS = (int, float)


def _number(cell: Cell) -> float:
    return cell if isinstance(cell, _NUMBERS) and isfinite(cell) else nan


TABLE_METRICS = frozenset(TABLES)


_LABELS = _labels()

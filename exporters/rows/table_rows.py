"""Rows for tables: those selected by name, the most active ones, and one row for the rest of each keyspace."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from collector.merge import aggregation
from collector.model import histogram
from collector.model.histogram import Buckets
from collector.model.metric import Series
from collector.model.snapshot import NEVER, Rate, Sample
from collector.node.catalogue import CATALOGUE
from collector.node.jolokia.table_budget import OTHERS
from collector.node.metrics.tables import REMAINDERS
from exporters.rows.columns import MS, ratio, rounded, times

_COUNT, _TOTAL = REMAINDERS.values()
_DURATION = "cassandra_table_operation_duration_seconds"
# The metrics that the rows need, including the keyspace counters, from which the "(others)" rows are computed.
NEEDS = {*REMAINDERS, _COUNT, _TOTAL, _DURATION}
_WORDS = {"Read": "read", "Write": "write"}


class TableColumn(NamedTuple):
    """A column of table rows: its header, its name in a row, and its number of decimal places."""

    header: str
    name: str
    digits: int


COLUMNS = (
    TableColumn("Rds/s", "reads_per_s", 1),
    TableColumn("RdLat", "read_mean_ms", 3),
    TableColumn("Rd99th", "read_p99_ms", 3),
    TableColumn("Wrts/s", "writes_per_s", 1),
    TableColumn("WrtLat", "write_mean_ms", 3),
    TableColumn("Wrt99th", "write_p99_ms", 3),
)
# Columns that are hidden on a narrow terminal, the least important first.
_DROPPED_FIRST = ("write_mean_ms", "read_mean_ms", "write_p99_ms", "read_p99_ms", "writes_per_s", "reads_per_s")


def fitting(count: int) -> list[TableColumn]:
    """Return the `count` most important columns."""
    dropped = _DROPPED_FIRST[: max(len(COLUMNS) - count, 0)]
    return [column for column in COLUMNS if column.name not in dropped]


def tables(sample: Sample) -> list[dict[str, Any]]:
    """Return a row per table, the busiest first, and then a row per keyspace for all its tables not read individually.

    A row contains the keyspace, the table, and, for both reads and writes, the rate per second and the mean and
    99th percentile latency (ms); absent values are None.
    """
    current = _current(sample)
    return _sorted([_row(current, *table) for table in _names(sample)])


def joint_tables(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """Return rows like those from `tables`, but merged from several nodes.

    If a table is not read individually on a node, its operations on that node are included in the "(others)" row.
    """
    merged = aggregation.merged(CATALOGUE, [_current(_of_tables(sample)) for sample in samples], NEVER)
    return _sorted([_row(merged, *table) for table in _names(merged)])


def _names(sample: Sample) -> list[tuple[str, str]]:
    counts = (series for series in sample.values if series[0] == _COUNT and len(series) == 4)
    return list(dict.fromkeys((keyspace, table) for _, keyspace, table, _ in counts))


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["table"] == OTHERS, -_busy(row), row["keyspace"], row["table"]))


def _of_tables(sample: Sample) -> Sample:
    wanted = (_COUNT, _TOTAL, _DURATION)
    return replace(sample, values={series: value for series, value in sample.values.items() if series[0] in wanted})


def _current(sample: Sample) -> Sample:
    """Return the sample without the tables whose rates cover more than this interval, unless they are last known ones.

    These tables were not read at every tick; in between, their operations were included in the "(others)" row.
    """
    elapsed = sample.elapsed_s.values()
    old = {
        series[1:]
        for series, value in sample.values.items()
        if series[0] == _COUNT
        and OTHERS not in series
        and series not in sample.last_known
        and isinstance(value, Rate)
        and value.elapsed_s not in elapsed
    }
    if not old:
        return sample
    return replace(sample, values={series: value for series, value in sample.values.items() if series[1:] not in old})


def _row(sample: Sample, keyspace: str, table: str) -> dict[str, Any]:
    row: dict[str, Any] = {"keyspace": keyspace, "table": table}
    for operation, word in _WORDS.items():
        per_s, mean_s, p99_s = _statistics(sample, (keyspace, table, operation))
        row[f"{word}s_per_s"] = rounded(per_s)
        row[f"{word}_mean_ms"] = rounded(times(MS, mean_s))
        row[f"{word}_p99_ms"] = rounded(times(MS, p99_s))
    return row


def _statistics(sample: Sample, labels: Series) -> tuple[float | None, float | None, float | None]:
    count, buckets = sample.values.get((_COUNT, *labels)), sample.values.get((_DURATION, *labels))
    return (
        count.per_s if isinstance(count, Rate) else None,
        ratio(sample, (_TOTAL, *labels), (_COUNT, *labels)),
        histogram.quantile(buckets, 0.99) if isinstance(buckets, Buckets) else None,
    )


def _busy(row: dict[str, Any]) -> float:
    return (row["reads_per_s"] or 0.0) + (row["writes_per_s"] or 0.0)


def table_lines(sample: Sample, width: int | None = None) -> list[str]:
    """Return a line of text for each table with operations; columns that do not fit into `width` are hidden."""
    return [_line(row, width) for row in tables(sample) if _busy(row)]


def _line(row: dict[str, Any], width: int | None) -> str:
    name = f"  {row['keyspace']}.{row['table']}".ljust(34)
    for count in range(len(COLUMNS), -1, -1):
        cells = [f"{header} {_cell(row[key], digits):>8}" for header, key, digits in fitting(count)]
        text = "  ".join([name, *cells])
        if width is None or len(text) <= width:
            return text
    return text[:width]


def _cell(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"

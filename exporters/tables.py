"""Single tables: the named and the most active ones, and what the others of a keyspace did together."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from collector import cluster, histogram
from collector.budget import OTHERS
from collector.catalogue import CATALOGUE
from collector.histogram import Buckets
from collector.model import Rate, Sample, Series, Tick
from collector.sources.tables import REMAINDERS
from exporters.columns import ratio

_COUNT, _TOTAL = REMAINDERS.values()
_DURATION = "cassandra_table_operation_duration_seconds"
# The keyspaces' own counters too: without them nothing can be said of the others.
NEEDS = {*REMAINDERS, _COUNT, _TOTAL, _DURATION}
NEVER = Tick(0.0)
_WORDS = {"Read": "read", "Write": "write"}
# Header, what of a row, digits, and how long it stays when the terminal is too narrow for all.
_CELLS = (
    ("Rds/s", "reads_per_s", 1, 5),
    ("RdLat", "read_mean_ms", 3, 3),
    ("Rd99th", "read_p99_ms", 3, 1),
    ("Wrts/s", "writes_per_s", 1, 4),
    ("WrtLat", "write_mean_ms", 3, 2),
    ("Wrt99th", "write_p99_ms", 3, 0),
)


def tables(sample: Sample) -> list[dict[str, Any]]:
    """Return what each table did in the interval, the busiest first and the others of a keyspace last.

    keyspace, table, and of reads and writes: per second, mean and 99th percentile in ms; None for what is not known.
    """
    news = _news(sample)
    return _sorted([_row(news, *table) for table in _named(sample)])


def joint_tables(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """Return what each table did on several nodes together, as `tables` does of one.

    A node on which a table is not among those that are read is not in that table's row, but in that of the others.
    """
    whole = cluster.merged(CATALOGUE, [_news(_of_tables(sample)) for sample in samples], NEVER)
    return _sorted([_row(whole, *table) for table in _named(whole)])


def _named(sample: Sample) -> list[tuple[str, str]]:
    found = (series for series in sample.values if series[0] == _COUNT and len(series) == 4)
    return list(dict.fromkeys((keyspace, table) for _, keyspace, table, _ in found))


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["table"] == OTHERS, -_busy(row), row["keyspace"], row["table"]))


def _of_tables(sample: Sample) -> Sample:
    wanted = (_COUNT, _TOTAL, _DURATION)
    return replace(sample, values={series: value for series, value in sample.values.items() if series[0] in wanted})


def _news(sample: Sample) -> Sample:
    """Return the sample without the figures of tables that were not among those that are read for a while.

    What these did meanwhile was told among the others.
    """
    known = sample.elapsed_s.values()
    old = {
        series[1:]
        for series, value in sample.values.items()
        if series[0] == _COUNT and OTHERS not in series and isinstance(value, Rate) and value.elapsed_s not in known
    }
    if not old:
        return sample
    return replace(sample, values={series: value for series, value in sample.values.items() if series[1:] not in old})


def _row(sample: Sample, keyspace: str, table: str) -> dict[str, Any]:
    row: dict[str, Any] = {"keyspace": keyspace, "table": table}
    for operation, word in _WORDS.items():
        per_s, mean_s, p99_s = _figures(sample, (keyspace, table, operation))
        row[f"{word}s_per_s"] = None if per_s is None else round(per_s, 4)
        row[f"{word}_mean_ms"] = None if mean_s is None else round(1000 * mean_s, 4)
        row[f"{word}_p99_ms"] = None if p99_s is None else round(1000 * p99_s, 4)
    return row


def _figures(sample: Sample, labels: Series) -> tuple[float | None, float | None, float | None]:
    count, buckets = sample.values.get((_COUNT, *labels)), sample.values.get((_DURATION, *labels))
    return (
        count.per_s if isinstance(count, Rate) else None,
        ratio(sample, (_TOTAL, *labels), (_COUNT, *labels)),
        histogram.quantile(buckets, 0.99) if isinstance(buckets, Buckets) else None,
    )


def _busy(row: dict[str, Any]) -> float:
    return (row["reads_per_s"] or 0.0) + (row["writes_per_s"] or 0.0)


def table_lines(sample: Sample, width: int | None = None) -> list[str]:
    """Return a line of text for each table that did something; where it is too wide, with fewer figures."""
    return [_line(row, width) for row in tables(sample) if _busy(row)]


def _line(row: dict[str, Any], width: int | None) -> str:
    name = f"  {row['keyspace']}.{row['table']}".ljust(34)
    for shed in range(len(_CELLS) + 1):
        cells = [f"{header} {_cell(row[key], digits):>8}" for header, key, digits, rank in _CELLS if rank >= shed]
        text = "  ".join([name, *cells])
        if width is None or len(text) <= width:
            return text
    return text[:width]


def _cell(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"

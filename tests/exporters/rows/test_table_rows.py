"""Per-table rows: the busiest table first, all other tables together last, and no row wider than the terminal."""

import math

from collector.model.histogram import Buckets
from collector.model.metric import Series
from collector.model.snapshot import Derived, Rate, Sample, Tick
from collector.node.jolokia.table_budget import OTHERS
from collector.node.metrics.tables import REMAINDERS
from exporters.rows.table_rows import COLUMNS, fitting, table_lines, tables
from tests.every import every

COUNT, TOTAL = REMAINDERS.values()
DURATION = "cassandra_table_operation_duration_seconds"
QUIET, BUSY = "quiet", "busy"


def counts(table: str, reads: float, elapsed_s: float = 1.0) -> dict[Series, Derived]:
    return {
        (COUNT, "ks", table, "Read"): Rate(reads, elapsed_s),
        (COUNT, "ks", table, "Write"): Rate(0.0, elapsed_s),
        (TOTAL, "ks", table, "Read"): Rate(reads * 0.0005, elapsed_s),
    }


def sample(*parts: dict[Series, Derived]) -> Sample:
    values = {series: value for part in parts for series, value in part.items()}
    return Sample("n", Tick(0.0), values, {"cassandra": 1.0})


MIXED = sample(counts(OTHERS, 900.0, 10.0), counts(QUIET, 3.0), counts(BUSY, 40.0), counts("idle", 0.0))


def test_the_busiest_table_is_first_and_the_remainder_last() -> None:
    assert [row["table"] for row in tables(MIXED)] == [BUSY, QUIET, "idle", OTHERS]
    assert tables(MIXED)[0] == {
        "keyspace": "ks",
        "table": BUSY,
        "reads_per_s": 40.0,
        "read_mean_ms": 0.5,
        "read_p99_ms": None,
        "writes_per_s": 0.0,
        "write_mean_ms": None,
        "write_p99_ms": None,
    }


def test_the_rate_of_the_remainder_covers_its_own_time() -> None:
    assert tables(MIXED)[-1]["reads_per_s"] == 90.0


def test_a_table_not_read_recently_has_no_values() -> None:
    late = tables(sample(counts(BUSY, 40.0), counts(QUIET, 500.0, 30.0)))
    assert [row["reads_per_s"] for row in late if row["table"] == QUIET] == [None]


def test_table_percentiles_cover_only_the_interval() -> None:
    buckets: dict[Series, Derived] = {
        (DURATION, "ks", BUSY, "Read"): Buckets((0.001, 0.002, 0.004, math.inf), (0, 0, 10, 0))
    }
    (row,) = tables(sample(counts(BUSY, 10.0), buckets))
    assert 2.0 <= row["read_p99_ms"] <= 4.0


def test_only_tables_with_operations_have_a_line() -> None:
    assert [line.split()[0] for line in table_lines(MIXED)] == ["ks.busy", "ks.quiet", f"ks.{OTHERS}"]


@every("width", [1, 20, 40, 60, 80, 100, 120, 200])
def test_table_lines_are_not_wider_than_the_terminal(width: int) -> None:
    assert all(len(line) <= width for line in table_lines(MIXED, width))


def test_the_most_important_columns_are_dropped_last() -> None:
    assert table_lines(MIXED, 50)[0].split() == ["ks.busy", "Rds/s", "40.0"]
    assert table_lines(MIXED, 70)[0].split() == ["ks.busy", "Rds/s", "40.0", "Wrts/s", "0.0"]
    assert table_lines(MIXED, 200) == table_lines(MIXED)


@every("width", range(30, 160, 7))
def test_the_least_important_columns_are_dropped_first(width: int) -> None:
    (text,) = table_lines(sample(counts("t1", 5)), width)
    shown = {column.name for column in COLUMNS if column.header in text.split()}
    assert shown == {column.name for column in fitting(len(shown))}

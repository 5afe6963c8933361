"""The columns of the cluster that are compared: those of the operations that occur, and the total."""

from exporters.results.comparison.amounts import row_ratios
from exporters.results.summary.phase_summary import occurring

USUAL = {"reads": 10, "writes": 0}


def columns(*rows: dict[str, float | str | None]) -> list[str]:
    return [ratio.column for ratio in row_ratios(occurring(rows)) if not ratio.column.endswith(("_pct", "kbit_per_s"))]


def test_reads_and_writes_are_compared_without_a_total_if_there_is_nothing_else() -> None:
    assert columns({**USUAL, "range_reads": 0, "cas_writes": None}) == [
        *("reads_per_s", "writes_per_s", "read_error_share", "write_error_share", "read_mean_ms", "write_mean_ms")
    ]


def test_operations_that_occur_in_one_of_the_runs_are_compared_with_the_total() -> None:
    names = columns({**USUAL}, {**USUAL, "range_reads": 5})
    assert names[:4] == ["operations_per_s", "reads_per_s", "writes_per_s", "range_reads_per_s"]
    assert {"range_read_error_share", "range_read_mean_ms"} < {*names}
    assert not [name for name in names if name.startswith("cas_")]

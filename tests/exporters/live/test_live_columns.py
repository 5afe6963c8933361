"""Columns of the live view, and the selectors that request their series from an agent."""

import re
from dataclasses import replace
from math import isnan

import pytest

from collector.model.metric import Series
from collector.model.snapshot import Derived, Rate, Sample, Tick
from collector.node.metrics.requests import ERRORS
from exporters.live.live_columns import COLUMN_INDEX, COLUMNS, NEEDS, cells_of, columns_of, needs, selectors
from exporters.rows.columns import Column
from exporters.series_selector import SeriesSelection, parse
from tests.every import every
from tests.exporters.live.full_samples import full_sample, without_buckets

FULL = full_sample()


def test_a_node_with_local_operations_has_the_same_columns() -> None:
    assert [column.name for column in columns_of(local=True)] == [column.name for column in COLUMNS]


UNITS = {"_ms": "ms", "_mb": "MiB", "_pct": "%", "_mb_per_s": "MiB/s", "_kbit_per_s": "kbit/s", "_per_s": "per second"}


@every("column", COLUMNS)
def test_the_help_of_a_column_states_its_own_unit(column: Column) -> None:
    assert column.help.strip()
    assert next((unit for suffix, unit in UNITS.items() if column.name.endswith(suffix)), "") in column.help
    assert not re.search(r"\b(bytes|seconds)\b", column.help)


@every("local", [False, True])
@every("column", COLUMNS)
def test_the_requested_series_are_all_that_a_column_reads(column: Column, local: bool) -> None:
    """The column is also correct if an agent ignores the matchers and sends all series."""
    selection = SeriesSelection(map(parse, selectors(needs([column.name]))))
    names, index = frozenset({column.name}), COLUMN_INDEX[column.name]
    is_shown = False
    for sample in (FULL, without_buckets(FULL), replace(FULL, values={}, last_known=FULL.values)):
        cells = cells_of(sample, local=local, names=names)
        assert repr(cells_of(selection.of(sample), local=local, names=names)) == repr(cells)
        is_shown |= not isnan(cells[index])
    assert is_shown


def test_series_that_no_column_reads_are_not_requested() -> None:
    selection = SeriesSelection(map(parse, selectors(NEEDS)))
    values = selection.of(FULL).values
    for metric, labels in (
        ("cassandra_client_request_unfinished_commits_total", []),
        ("cassandra_messages_dropped_total", ["MUTATION_REQ", "READ_REQ"]),
        ("cassandra_pool_active", ["MutationStage", "ReadStage"]),
    ):
        assert sorted(series[-1] for series in values if series[0] == metric) == labels
        assert len([series for series in FULL.values if series[0] == metric]) > len(labels)


@pytest.mark.parametrize("error", ["timeouts", "unavailables"])
def test_errors_of_all_operations_count_and_none_twice(error: str) -> None:
    metric = ERRORS[error]
    # A serial read that fails is also a read, and a view write is a part of a write.
    failed = {"Read": 1.0, "CASRead": 1.0, "Write": 2.0, "ViewWrite": 2.0, "RangeSlice": 4.0, "CASWrite": 8.0}
    values: dict[Series, Derived] = {(metric, scope): Rate(per_s, 1.0) for scope, per_s in failed.items()}
    assert cells_of(Sample("n", Tick(1.0), values, {}))[COLUMN_INDEX[f"{error}_per_s"]] == 15

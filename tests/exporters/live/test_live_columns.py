"""Columns of the live view, and the filter that removes unused values before they are decoded."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model.metric import Series
from collector.model.sample import Derived, Rate
from collector.model.sample_json import decoded, encoded
from exporters.line.columns import Column
from exporters.live.live_columns import COLUMNS, cells_of, columns_of, needed
from tests.collector.cluster.live.node_samples import sample_of


def test_a_node_with_local_operations_has_the_same_columns() -> None:
    assert [column.name for column in columns_of(local=True)] == [column.name for column in COLUMNS]


UNITS = {"_ms": "ms", "_mb": "MiB", "_pct": "%", "_mb_per_s": "MiB/s", "_kbit_per_s": "kbit/s", "_per_s": "per second"}


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_the_help_of_a_column_states_its_own_unit(column: Column) -> None:
    assert column.help.strip()
    assert next((unit for suffix, unit in UNITS.items() if column.name.endswith(suffix)), "") in column.help
    assert not re.search(r"\b(bytes|seconds)\b", column.help)


def test_values_filtered_before_decoding_are_not_in_any_column() -> None:
    sample = sample_of("a")
    unused: dict[Series, Derived] = {("cassandra_client_requests_total", "CASRead"): Rate(1.0, 1.0)}
    content = encoded(replace(sample, values={**sample.values, **unused}))
    filtered = decoded({**content, "values": needed(content["values"])})
    assert len(filtered.values) < len(decoded(content).values)
    assert list(map(repr, cells_of(filtered))) == list(map(repr, cells_of(decoded(content))))


@given(
    st.dictionaries(
        st.text(max_size=5) | st.sampled_from(["cassandra_client_requests_total"]),
        st.none() | st.lists(st.lists(st.integers())) | st.integers(),
    )
)
def test_malformed_values_are_left_to_the_decoder(values: dict[str, object]) -> None:
    assert needed(values).keys() == values.keys()

"""Frames of a live cluster: the cluster row merges the samples of all nodes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model import histogram
from collector.model.metric import Series
from collector.model.sample_json import decoded, encoded
from collector.model.snapshot import Derived, Rate
from exporters.live.frame import ALL, Wanted
from exporters.live.live_columns import value
from tests.collector.live.node_samples import INDEX, assembler_of, read_durations, sample_of, silent_sample
from tests.exporters.live.generated_frames import frame
from tests.exporters.samples import TIME_S, durations


@given(
    st.lists(
        st.dictionaries(st.integers(1, 126), st.integers(1, 10**6), min_size=1, max_size=6), min_size=1, max_size=8
    )
)
def test_cluster_percentiles_are_computed_from_the_merged_buckets(filled: list[dict[int, int]]) -> None:
    assembler = assembler_of(*map(str, range(len(filled))))
    parts = [durations(counts) for counts in filled]
    for index, part in enumerate(parts):
        sample = sample_of(str(index))
        values: dict[Series, Derived] = {
            ("cassandra_client_request_duration_seconds", "Read"): part,
            ("cassandra_client_requests_total", "Read"): Rate(part.total, 1.0),
        }
        assembler.add_sample(str(index), replace(sample, values={**sample.values, **values}), TIME_S + 0.1)
    shown = frame(assembler.close(INDEX, TIME_S + 0.5))
    merged = histogram.merge(parts)
    for share, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99")):
        expected = histogram.quantile(merged, share)
        assert expected is not None
        assert value(shown.cluster, f"read_{name}_ms") == pytest.approx(1000 * expected)
    assert value(shown.cluster, "reads_per_s") == pytest.approx(merged.total)
    assert shown.counted == len(parts)


def test_the_row_of_300_nodes_is_the_merge_of_their_buckets() -> None:
    names = [f"10.0.{number // 250}.{number % 250}" for number in range(300)]
    assembler = assembler_of(*names)
    samples = [sample_of(name, reads=100 + 7 * number, bucket=20 + number % 40) for number, name in enumerate(names)]
    for name, sample in zip(names, samples, strict=True):
        # Encode and decode the sample, as if an agent had sent it.
        assembler.add_sample(name, decoded(encoded(sample)), TIME_S + 0.3)
    shown = frame(assembler.close(INDEX, TIME_S + 0.5))
    expected = histogram.quantile(histogram.merge([read_durations(sample) for sample in samples]), 0.99)
    assert expected is not None
    assert value(shown.cluster, "read_p99_ms") == pytest.approx(1000 * expected)
    assert value(shown.cluster, "reads_per_s") == sum(100 + 7 * number for number in range(300))
    assert shown.counted == len(shown.nodes) == 300


def test_amounts_are_summed_and_ratios_are_computed_from_the_sums() -> None:
    assembler = assembler_of("a", "b")
    for node, heap in (("a", 2.0**30), ("b", 3 * 2.0**30)):
        sample = sample_of(node)
        values = {**sample.values, ("cassandra_jvm_heap_used_bytes",): heap, ("cassandra_jvm_heap_max_bytes",): 2.0**32}
        assembler.add_sample(node, replace(sample, values=values), TIME_S + 0.1)
    cluster = frame(assembler.close(INDEX, TIME_S + 0.5)).cluster
    assert value(cluster, "heap_used_mb") == 4096
    assert value(cluster, "heap_pct") == 50


def test_a_node_without_a_sample_has_no_values() -> None:
    assembler = assembler_of("a", "b")
    assembler.add_sample("a", silent_sample("a"), TIME_S + 0.1)
    silent, new = frame(assembler.close(INDEX, TIME_S + 0.5)).nodes
    assert value(silent.cells, "cpu_user_pct") is not None
    assert value(silent.cells, "reads_per_s") is None
    assert all(cell != cell for cell in new.cells)


def test_tables_of_the_cluster_are_merged_from_all_nodes() -> None:
    assembler = assembler_of("a", "b")
    name = "cassandra_table_operation"
    for node, bucket in (("a", 30), ("b", 60)):
        values: dict[Series, Derived] = {
            (f"{name}s_total", "ks", "t", "Read"): Rate(100.0, 1.0),
            (f"{name}_seconds_total", "ks", "t", "Read"): Rate(0.1, 1.0),
            (f"{name}_duration_seconds", "ks", "t", "Read"): durations({bucket: 100}),
        }
        sample = sample_of(node)
        sample = replace(sample, values={**sample.values, **values}, elapsed_s={"cassandra": 1.0})
        assembler.add_sample(node, sample, TIME_S + 0.1)
    interval = assembler.close(INDEX, TIME_S + 0.5)
    shown = frame(interval, Wanted(frozenset({"reads_per_s"}), ALL))
    (row,) = shown.tables[ALL]
    expected = histogram.quantile(durations({30: 100, 60: 100}), 0.99)
    assert expected is not None
    assert (row["reads_per_s"], row["read_mean_ms"]) == (200.0, 1.0)
    assert row["read_p99_ms"] == pytest.approx(1000 * expected, abs=1e-3)
    # Columns that were not requested are not computed.
    assert value(shown.cluster, "reads_per_s") == pytest.approx(2 * 4321.5)
    assert value(shown.cluster, "cpu_user_pct") is None
    # A node shown alone has all columns and its own tables.
    alone = frame(interval, Wanted(frozenset({"reads_per_s"}), None, 1))
    assert value(alone.nodes[1].cells, "writes_per_s") is not None
    assert [table["reads_per_s"] for table in alone.tables[1]] == [100.0]


def test_tables_that_nodetool_reported_earlier_stay_on_the_screen() -> None:
    """A node's `tablestats` may take many ticks, and the nodes' reports arrive in different ones."""
    assembler = assembler_of("a", "b")
    for node, seconds in (("a", 40.0), ("b", 50.0)):
        series = ("cassandra_table_operations_total", "ks", "t", "Read")
        earlier = replace(sample_of(node), last_known={series: Rate(100 * seconds, seconds)}, age_s=9.0)
        assembler.add_sample(node, replace(earlier, elapsed_s={"nodetool tpstats": 1.0}), TIME_S + 0.1)
    interval = assembler.close(INDEX, TIME_S + 0.5)
    (row,) = frame(interval, Wanted(frozenset({"reads_per_s"}), ALL)).tables[ALL]
    assert (row["keyspace"], row["table"], row["reads_per_s"]) == ("ks", "t", 200.0)
    (row,) = frame(interval, Wanted(frozenset({"reads_per_s"}), None, 1)).tables[1]
    assert row["reads_per_s"] == 100.0

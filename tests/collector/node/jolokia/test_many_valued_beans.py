"""Attributes with many values: running compactions, pending compactions by table, and a cluster's nodes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model.histogram import difference, quantile
from collector.model.mbean import mbean_requests
from collector.model.metric import Kind, Values
from collector.node.catalogue import BEANS
from tests.every import every

# Jolokia returns these numbers as strings.
RUNNING = [
    {
        "keyspace": "ks1",
        "columnfamily": "t001",
        "taskType": "Compaction",
        "completed": "1048576",
        "total": "4194304",
        "unit": "bytes",
        "compactionId": "5b1c9a40-8a58-11f0-9c9f-0b1d2e3f4a5b",
        "sstables": "/data/ks1/t001/nb-1-big-Data.db",
    },
    {
        "keyspace": "ks1",
        "columnfamily": "t002",
        "taskType": "Validation",
        "completed": "5",
        "total": "10",
        "unit": "bytes",
        "compactionId": "6c2d0b51-8a58-11f0-9c9f-0b1d2e3f4a5b",
    },
]


def values_of(metric: str, value: Any) -> Values:
    """Return the values decoded from `value`, the metric's attribute as Jolokia returns it."""
    bean = next(bean for bean in BEANS if bean.metric.name == metric)
    labels = {placeholder: placeholder for placeholder in bean.placeholders}
    (request,) = mbean_requests([bean], {bean.family: [labels]}, lambda read_bean, _: read_bean.metric.scrape_interval)
    return request.values({"value": value, "status": 200})


def test_each_running_compaction_has_its_progress_and_size() -> None:
    first, second = (compaction["compactionId"] for compaction in RUNNING)
    assert values_of("cassandra_compaction_progress", RUNNING) == {
        ("cassandra_compaction_progress", first, "ks1", "t001", "Compaction"): 1048576,
        ("cassandra_compaction_progress", second, "ks1", "t002", "Validation"): 5,
    }
    assert values_of("cassandra_compaction_size", RUNNING) == {
        ("cassandra_compaction_size", first, "ks1", "t001", "Compaction"): 4194304,
        ("cassandra_compaction_size", second, "ks1", "t002", "Validation"): 10,
    }


def test_compaction_parameters_of_all_tables_are_one_text_without_system_keyspaces() -> None:
    parameters = {"class": "org.apache.cassandra.db.compaction.LeveledCompactionStrategy", "sstable_size_in_mb": "160"}
    names = [f"keyspace=ks,table=t{number},type=Tables" for number in range(5)]
    tables = {f"org.apache.cassandra.db:{name}": {"CompactionParameters": parameters} for name in names}
    tables["org.apache.cassandra.db:keyspace=ks,table=u,type=Tables"] = {"CompactionParameters": {"class": "a.B"}}
    tables["org.apache.cassandra.db:keyspace=system,table=u,type=Tables"] = {"CompactionParameters": {"class": "a.C"}}
    assert values_of("cassandra_compaction_parameters", tables) == {
        ("cassandra_compaction_parameters",): "B (ks.u); LeveledCompactionStrategy sstable_size_in_mb=160"
        " (ks.t0, ks.t1, ks.t2 and 2 more)"
    }
    assert values_of("cassandra_compaction_parameters", {"x": 1}) == {}


def test_the_replication_of_a_keyspace_is_the_result_of_an_operation_of_another_mbean() -> None:
    (bean,) = [bean for bean in BEANS if bean.called]
    known = {bean.family: [{"keyspace": "ks"}]}
    (request,) = mbean_requests([bean], known, lambda read_bean, _: read_bean.metric.scrape_interval)
    assert json.loads(request.body) == {
        "type": "exec",
        "mbean": "org.apache.cassandra.db:type=StorageService",
        "operation": "getKeyspaceReplicationInfo(java.lang.String)",
        "arguments": ["ks"],
    }
    assert not request.is_operation
    value = "SimpleStrategy {replication_factor=2}"
    assert request.values({"value": value, "status": 200}) == {("cassandra_keyspace_replication", "ks"): value}
    assert request.values({"status": 403}) == {}


def test_compactions_in_3_11_have_a_different_id_field() -> None:
    old = {**RUNNING[0], "id": "0f0e0d0c"}
    del old["compactionId"]
    assert list(values_of("cassandra_compaction_size", [old])) == [
        ("cassandra_compaction_size", "0f0e0d0c", "ks1", "t001", "Compaction")
    ]


def test_a_compaction_without_a_table_has_empty_labels() -> None:
    summary = {**RUNNING[0], "keyspace": None, "columnfamily": None, "taskType": "Index summary redistribution"}
    assert list(values_of("cassandra_compaction_size", [summary])) == [
        ("cassandra_compaction_size", summary["compactionId"], "", "", "Index summary redistribution")
    ]


def test_there_are_no_values_when_no_compaction_is_running() -> None:
    assert values_of("cassandra_compaction_progress", []) == {}


def test_pending_compactions_are_counted_by_table() -> None:
    assert values_of("cassandra_compaction_pending_by_table", {"ks1": {"t001": 3, "t002": 1}, "ks2": {"t": 2}}) == {
        ("cassandra_compaction_pending_by_table", "ks1", "t001"): 3,
        ("cassandra_compaction_pending_by_table", "ks1", "t002"): 1,
        ("cassandra_compaction_pending_by_table", "ks2", "t"): 2,
    }
    assert values_of("cassandra_compaction_pending_by_table", {}) == {}


@pytest.mark.parametrize(("value", "expected"), [(2_000_000, {2_000_000}), (-1_924_000, {0}), (0, {0}), ("NaN", set())])
def test_a_negative_task_age_is_reported_as_zero(value: Any, expected: set[int]) -> None:
    assert set(values_of("cassandra_pool_oldest_task_seconds", value).values()) == expected


def test_the_nodes_in_a_list_are_counted() -> None:
    assert values_of("cassandra_endpoints_live", ["127.0.0.1", "127.0.0.2"]) == {("cassandra_endpoints_live",): 2}
    assert values_of("cassandra_endpoints_unreachable", []) == {("cassandra_endpoints_unreachable",): 0}


MANY = tuple(bean.metric.name for bean in BEANS if bean.many is not None and bean.metric.kind is not Kind.HISTOGRAM)
MALFORMED: list[Any] = [
    None,
    5,
    "ERROR: javax.management.AttributeNotFoundException : No such attribute",
    [5],
    [None],
    [[]],
    ["abc"],
    [{}],
    [{**RUNNING[0], "completed": "half", "total": "all"}],
    [{**RUNNING[0], "completed": None, "total": None}],
    [{**RUNNING[0], "completed": float("inf"), "total": float("inf")}],
    [{**RUNNING[0], "completed": float("nan"), "total": float("nan")}],
    {"ks1": 5},
    {"ks1": None},
    {"ks1": {"t001": "many"}},
    {"ks1": {"t001": None}},
]


@every("value", MALFORMED)
@every("metric", [name for name in MANY if "endpoints" not in name and "oldest" not in name])
def test_malformed_values_are_absent(metric: str, value: Any) -> None:
    assert values_of(metric, value) == {}


@every("value", [None, 5, "ERROR: no such attribute", {"127.0.0.1": "UP"}])
@every("metric", [name for name in MANY if "endpoints" in name])
def test_a_malformed_list_of_nodes_is_absent(metric: str, value: Any) -> None:
    assert values_of(metric, value) == {}


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=6), inner, max_size=3),
        st.dictionaries(st.sampled_from(sorted(RUNNING[0])), inner, min_size=5),
    ),
    max_leaves=20,
)


@given(anything)
def test_any_json_response_gives_well_formed_series(value: Any) -> None:
    arity = {bean.metric.name: len(bean.metric.labels) for bean in BEANS}
    for metric in MANY:
        for series in values_of(metric, value):
            assert len(series) == 1 + arity[metric]
            assert all(isinstance(label, str) for label in series)


@given(st.lists(st.fixed_dictionaries(dict.fromkeys(RUNNING[0], anything)), max_size=3))
def test_any_compaction_gives_well_formed_series(compactions: list[dict[str, Any]]) -> None:
    for metric in ("cassandra_compaction_progress", "cassandra_compaction_size"):
        assert all(len(series) == 5 for series in values_of(metric, compactions))


@pytest.mark.parametrize("length", [165, 166])
def test_reads_without_tombstones_have_the_value_zero(length: int) -> None:
    # With 165 buckets, the first one counts both 0 and 1; with 166, the first one counts only 0.
    counts = [7, 5, *[0] * (length - 2)]
    name = "cassandra_table_tombstones_per_read"
    (decoded,) = values_of(name, counts).values()
    assert isinstance(decoded, tuple)
    buckets = difference("1", [0] * 166, decoded)
    assert buckets is not None
    assert quantile(buckets, 0.5) == 0
    assert quantile(buckets, 1.0) == (2 if length == 165 else 1)


def test_a_malformed_histogram_is_absent() -> None:
    answers: tuple[Any, ...] = ([], None, "x", 7, {}, [[]])
    for answer in answers:
        assert values_of("cassandra_table_tombstones_per_read", answer) == {}

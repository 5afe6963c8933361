"""Captured responses from real 4.1 and 5.0 nodes, decoded with the complete catalogue."""

import json
import re
from itertools import product

from collector.model.mbean import METRICS, MBean, properties
from collector.model.metric import Series, Value
from collector.node.catalogue import BEANS
from collector.node.selection import Selection
from tests.collector import captures
from tests.collector.node.jolokia.captured_node import read
from tests.collector.nodes import Node
from tests.every import every

# Cassandra registers these MBeans only when they are first used.
ON_FIRST_USE = {"HintsSucceeded", "HintsFailed", "HintsTimedOut"}


EXPECTED: dict[str, dict[Series, Value]] = {
    "4.1.9": {
        ("cassandra_client_requests_total", "Read"): 14318,
        ("cassandra_client_requests_total", "Write"): 17932,
        ("cassandra_client_requests_total", "RangeSlice"): 102,
        ("cassandra_client_request_timeouts_total", "CASRead"): 0,
        ("cassandra_compaction_completed_total",): 371,
        ("cassandra_compaction_bytes_total",): 72477155,
        ("cassandra_load_bytes",): 28888530,
        ("cassandra_cache_hits_total", "KeyCache"): 121,
        ("cassandra_cache_requests_total", "KeyCache"): 875,
        ("cassandra_cache_bytes", "KeyCache"): 33040,
        ("cassandra_commitlog_bytes",): 41943040,
        ("cassandra_messages_dropped_total", "READ_REQ"): 0,
        ("cassandra_native_connections",): 0,
        ("cassandra_table_operations_total", "ks1", "t001", "Read"): 1357,
        ("cassandra_table_operations_total", "ks1", "t001", "Write"): 1447,
        ("cassandra_jvm_gc_total", "G1 Young Generation"): 40,
        ("cassandra_jvm_gc_seconds_total", "G1 Young Generation"): 1215,
        ("cassandra_jvm_heap_used_bytes",): 259790704,
        ("cassandra_jvm_heap_max_bytes",): 536870912,
        ("cassandra_jvm_threads",): 74,
        ("cassandra_jvm_cpu_seconds_total",): 47100000000,
        ("cassandra_jvm_open_files",): 195,
    },
    "5.0.6": {
        ("cassandra_client_requests_total", "Read"): 66775,
        ("cassandra_client_requests_total", "Write"): 70683,
        ("cassandra_client_requests_total", "RangeSlice"): 162,
        ("cassandra_compaction_completed_total",): 1036,
        ("cassandra_compaction_pending",): 0,
        ("cassandra_load_bytes",): 29691937,
        ("cassandra_exceptions_total",): 0,
        ("cassandra_hints_total",): 0,
        ("cassandra_cache_hits_total", "KeyCache"): 724,
        ("cassandra_cache_requests_total", "KeyCache"): 6816,
        ("cassandra_cache_requests_total", "RowCache"): 0,
        ("cassandra_pool_active", "transport", "Native-Transport-Requests"): 0,
        ("cassandra_pool_pending", "internal", "MemtableFlushWriter"): 0,
        ("cassandra_table_operations_total", "ks1", "t001", "Read"): 6661,
        ("cassandra_jvm_gc_total", "G1 Young Generation"): 24,
        ("cassandra_jvm_heap_used_bytes",): 363253760,
        ("cassandra_jvm_threads",): 109,
        ("cassandra_jvm_cpu_seconds_total",): 81870000000,
    },
}


@every("version", captures.VERSIONS)
def test_responses_from_real_nodes_are_decoded(version: str) -> None:
    assert read(version, Selection(keyspace="ks1", table="t001")).items() >= EXPECTED[version].items()


@every("version", captures.VERSIONS)
def test_metrics_that_were_not_requested_are_absent(version: str) -> None:
    names = {series[0] for series in read(version, Selection())}
    assert "cassandra_client_requests_total" in names
    assert not names & {
        "cassandra_client_request_duration_seconds",
        "cassandra_endpoints_live",
        "cassandra_hints_failed_total",
    }


@every("version", captures.VERSIONS)
def test_every_captured_response_has_a_value_and_status_200(version: str) -> None:
    pairs = captures.bulk(version)
    assert pairs
    for pair in pairs:
        assert {"value", "status"} <= set(pair["response"])
        assert pair["response"]["status"] == 200


def expanded(bean: MBean) -> list[str]:
    """Return the bean's `name` property for each combination of the label values listed in the catalogue."""
    name = properties(bean.name).get("name", "")
    values = product(*bean.only.values())
    return [name.format_map(dict(zip(bean.only, labels, strict=True))) for labels in values]


@every("version", captures.VERSIONS)
def test_real_nodes_have_the_mbeans_that_the_catalogue_reads(version: str) -> None:
    names = captures.names(version)
    beans = [bean for bean in BEANS if bean.name.startswith(METRICS) and properties(bean.name).get("type") in names]
    assert beans
    for bean in beans:
        assert set(expanded(bean)) <= {*names[properties(bean.name)["type"]], *ON_FIRST_USE}, bean.metric.name


def test_captures_contain_every_mbean_type_in_the_catalogue_except_streaming() -> None:
    read_types = {properties(bean.name)["type"] for bean in BEANS if bean.name.startswith(METRICS)}
    assert read_types - set(captures.names("5.0.6")) == {"Streaming"}


def test_requests_do_not_reset_values_for_other_readers() -> None:
    node = Node(BEANS)
    node.tick()
    sent = [request for requests in node.jolokia.rounds for request in requests]
    assert sent
    for request in sent:
        assert request["type"] in ("read", "search", "exec")
        assert request["type"] != "read" or request["attribute"]
        assert request["type"] != "exec" or request["operation"] == "values()"
        assert not re.search("RecentValues|AndResetStats|type=ColumnFamily", json.dumps(request))

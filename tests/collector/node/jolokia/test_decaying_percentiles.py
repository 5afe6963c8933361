"""Decaying percentiles: read only if the node refuses bucket counts, and never mixed with interval percentiles."""

import pytest

from collector.model.mbean import METRICS
from collector.model.metric import Kind
from collector.node.catalogue import BEANS, CATALOGUE
from collector.node.metrics.decaying_percentiles import DECAYED, QUANTILE, QUANTILES
from collector.node.selection import Selection
from tests.collector.nodes import REQUEST, Beans, Node, real_keyspace, real_table

CLIENT, KEYSPACE, TABLE = (
    f"cassandra_{kind}_decayed_seconds" for kind in ("client_request", *("keyspace_operation", "table_operation"))
)
DURATION = "cassandra_client_request_duration_seconds"
REASON = "java.lang.SecurityException: not allowed by policy"


def requests() -> Beans:
    beans: Beans = {}
    for position, operation in enumerate(("Read", "Write"), 1):
        decayed = {attribute: 100.0 * position * rank for rank, attribute in enumerate(QUANTILES.values(), 1)}
        beans[REQUEST.format(operation=operation)] = {"Count": 5, "values()": [0] * 128, **decayed}
        beans[f"{METRICS}type=ClientRequest,scope={operation},name=TotalLatency"] = {"Count": 5}
    return beans


def make_node(*beans: Beans, selection: Selection | None = None) -> Node:
    return Node(BEANS, requests(), *beans, selection=selection or Selection())


def decayed(node: Node) -> set[tuple[str, ...]]:
    return {series for series in node.tick().values if series[0] in DECAYED}


def test_decaying_percentiles_are_not_read_while_buckets_are_available() -> None:
    node = make_node()
    for _ in range(130):
        assert decayed(node) == set()
    assert node.source.refused == ""
    assert not any("Percentile" in str(request) for sent in node.jolokia.rounds for request in sent)


def test_decaying_percentiles_replace_refused_buckets() -> None:
    node = make_node()
    node.jolokia.forbidding = REASON
    node.tick()
    assert node.source.refused == REASON
    values = node.tick().values
    assert {series: values[series] for series in values if series[:2] == (CLIENT, "Write")} == {
        (CLIENT, "Write", "0.5"): 200.0,
        (CLIENT, "Write", "0.95"): 400.0,
        (CLIENT, "Write", "0.99"): 600.0,
        (CLIENT, "Write", "1"): 800.0,
    }
    assert not any(series[0] == DURATION for series in values)


def test_one_request_reads_all_percentiles_and_the_count_of_each_mbean() -> None:
    node = make_node()
    node.jolokia.forbidding = REASON
    for _ in range(3):
        node.tick()
    reads = [request for sent in node.jolokia.rounds for request in sent if request["type"] == "read"]
    last = [request for request in reads if request["mbean"] == REQUEST.format(operation="Read")][-1]
    assert set(last["attribute"]) == {"Count", *QUANTILES.values()}


def test_a_missing_mbean_is_not_a_refusal() -> None:
    node = make_node()
    for name in requests():
        del node.jolokia.beans[name]
    for _ in range(10):
        node.tick()
    assert node.source.refused == ""


def test_the_reason_for_a_refusal_is_one_line() -> None:
    node = make_node()
    node.jolokia.forbidding = "one\n  two\r\nthree"
    node.tick()
    assert node.source.refused.split() == ["one", "two", "three"]
    assert len(node.source.refused.splitlines()) == 1


def test_unselected_decaying_percentiles_are_not_read() -> None:
    wanted = frozenset({"cassandra_client_requests_total", DURATION})
    node = make_node(selection=Selection(metrics=wanted))
    node.jolokia.forbidding = REASON
    for _ in range(5):
        assert decayed(node) == set()


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(keyspace="ks", table="t"), {CLIENT, KEYSPACE, TABLE}),
        (Selection(keyspace="ks"), {CLIENT, KEYSPACE}),
        (Selection(), {CLIENT, KEYSPACE}),
    ],
)
def test_keyspaces_and_selected_tables_have_decaying_percentiles(selection: Selection, expected: set[str]) -> None:
    percentiles = dict.fromkeys(QUANTILES.values(), 5.0)
    beans = {
        name: {**attributes, **percentiles}
        for name, attributes in (real_table("ks", "t") | real_keyspace("ks")).items()
    }
    node = make_node(beans, selection=selection)
    node.jolokia.forbidding = REASON
    node.tick()
    assert {series[0] for series in decayed(node)} == expected


def test_a_refusal_that_begins_later_is_detected() -> None:
    node = make_node()
    for _ in range(100):
        assert decayed(node) == set()
    node.jolokia.forbidding = REASON
    node.tick()
    assert {series[0] for series in decayed(node)} == {CLIENT}


def test_a_failed_search_is_repeated() -> None:
    node = make_node(real_table("ks", "t"), selection=Selection(keyspace="ks", table="t"))
    node.tick()
    node.jolokia.forbidding = REASON
    node.jolokia.refusing = "not now"
    assert "not now" in node.tick().problem
    node.jolokia.refusing = ""
    node.tick()
    assert CLIENT in {series[0] for series in decayed(node)}


def test_decaying_percentiles_are_gauges_in_seconds() -> None:
    for name in DECAYED:
        metric = CATALOGUE[name]
        assert (metric.kind, metric.unit, metric.scale) == (Kind.GAUGE, "seconds", 1e-6)
        assert metric.labels[-1] == QUANTILE
        assert "decay" in metric.help
        assert not metric.columns


def test_a_refusal_does_not_change_the_searches_for_tables() -> None:
    node = make_node(real_table("ks", "t"), selection=Selection(tables=1))
    node.tick()
    before = node.jolokia.searches()[0]
    node.jolokia.forbidding = REASON
    node.tick()
    assert set(node.jolokia.searches()[-1]) == set(before)

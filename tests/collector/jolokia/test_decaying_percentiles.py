"""Percentiles that decay: asked for only where the bucket counts are refused, and never mistaken for them."""

import pytest

from collector.cassandra.decaying_percentiles import DECAYED, QUANTILE, QUANTILES
from collector.catalogue import BEANS, CATALOGUE
from collector.jolokia.mbean import METRICS
from collector.model.metric import Kind
from collector.sampling.selection import Selection
from tests.collector.nodes import REQUEST, Beans, Node, real_keyspace, real_table

CLIENT, KEYSPACE, TABLE = (
    f"cassandra_{kind}_decayed_seconds" for kind in ("client_request", *("keyspace_operation", "table_operation"))
)
DURATION = "cassandra_client_request_duration_seconds"
REASON = "java.lang.SecurityException: not allowed by policy"


def requests() -> Beans:
    found: Beans = {}
    for position, operation in enumerate(("Read", "Write"), 1):
        decayed = {attribute: 100.0 * position * rank for rank, attribute in enumerate(QUANTILES.values(), 1)}
        found[REQUEST.format(operation=operation)] = {"Count": 5, "values()": [0] * 128, **decayed}
        found[f"{METRICS}type=ClientRequest,scope={operation},name=TotalLatency"] = {"Count": 5}
    return found


def node(*there: Beans, selection: Selection | None = None) -> Node:
    return Node(BEANS, requests(), *there, selection=selection or Selection())


def decayed(watched: Node) -> set[tuple[str, ...]]:
    return {series for series in watched.tick().values if series[0] in DECAYED}


def test_a_node_that_tells_its_buckets_is_never_asked_for_decayed_ones() -> None:
    watched = node()
    for _ in range(130):
        assert decayed(watched) == set()
    assert watched.source.refused == ""
    assert not any("Percentile" in str(request) for asked in watched.jolokia.rounds for request in asked)


def test_once_the_buckets_are_refused_decayed_ones_come_instead() -> None:
    watched = node()
    watched.jolokia.forbidding = REASON
    watched.tick()
    assert watched.source.refused == REASON
    values = watched.tick().values
    assert {series: values[series] for series in values if series[:2] == (CLIENT, "Write")} == {
        (CLIENT, "Write", "0.5"): 200.0,
        (CLIENT, "Write", "0.95"): 400.0,
        (CLIENT, "Write", "0.99"): 600.0,
        (CLIENT, "Write", "1"): 800.0,
    }
    assert not any(series[0] == DURATION for series in values)


def test_one_request_brings_all_of_a_beans_percentiles_and_its_count() -> None:
    watched = node()
    watched.jolokia.forbidding = REASON
    for _ in range(3):
        watched.tick()
    asked = [each for requests in watched.jolokia.rounds for each in requests if each["type"] == "read"]
    request = [each for each in asked if each["mbean"] == REQUEST.format(operation="Read")][-1]
    assert set(request["attribute"]) == {"Count", *QUANTILES.values()}


def test_what_is_missing_is_not_what_is_refused() -> None:
    watched = node()
    for name in requests():
        del watched.jolokia.beans[name]
    for _ in range(10):
        watched.tick()
    assert watched.source.refused == ""


def test_the_reason_is_one_line() -> None:
    watched = node()
    watched.jolokia.forbidding = "one\n  two\r\nthree"
    watched.tick()
    assert watched.source.refused.split() == ["one", "two", "three"]
    assert len(watched.source.refused.splitlines()) == 1


def test_only_what_is_wanted_is_read() -> None:
    wanted = frozenset({"cassandra_client_requests_total", DURATION})
    watched = node(selection=Selection(metrics=wanted))
    watched.jolokia.forbidding = REASON
    for _ in range(5):
        assert decayed(watched) == set()


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(keyspace="ks", table="t"), {CLIENT, KEYSPACE, TABLE}),
        (Selection(keyspace="ks"), {CLIENT, KEYSPACE}),
        (Selection(), {CLIENT, KEYSPACE}),
    ],
)
def test_keyspaces_and_named_tables_have_them_too(selection: Selection, expected: set[str]) -> None:
    tails = dict.fromkeys(QUANTILES.values(), 5.0)
    beans = {
        name: {**attributes, **tails} for name, attributes in (real_table("ks", "t") | real_keyspace("ks")).items()
    }
    watched = node(beans, selection=selection)
    watched.jolokia.forbidding = REASON
    watched.tick()
    assert {series[0] for series in decayed(watched)} == expected


def test_a_policy_that_comes_while_the_line_runs_is_noticed() -> None:
    watched = node()
    for _ in range(100):
        assert decayed(watched) == set()
    watched.jolokia.forbidding = REASON
    watched.tick()
    assert {series[0] for series in decayed(watched)} == {CLIENT}


def test_a_search_that_fails_then_is_made_up_for() -> None:
    watched = node(real_table("ks", "t"), selection=Selection(keyspace="ks", table="t"))
    watched.tick()
    watched.jolokia.forbidding = REASON
    watched.jolokia.refusing = "not now"
    assert "not now" in watched.tick().problem
    watched.jolokia.refusing = ""
    watched.tick()
    assert CLIENT in {series[0] for series in decayed(watched)}


def test_they_are_gauges_that_say_so_in_seconds() -> None:
    for name in DECAYED:
        metric = CATALOGUE[name]
        assert (metric.kind, metric.unit, metric.scale) == (Kind.GAUGE, "seconds", 1e-6)
        assert metric.labels[-1] == QUANTILE
        assert "decay" in metric.help
        assert not metric.columns


def test_tables_are_still_looked_for_by_what_every_version_has() -> None:
    watched = node(real_table("ks", "t"), selection=Selection(tables=1))
    watched.tick()
    before = watched.jolokia.searches()[0]
    watched.jolokia.forbidding = REASON
    watched.tick()
    assert set(watched.jolokia.searches()[-1]) == set(before)

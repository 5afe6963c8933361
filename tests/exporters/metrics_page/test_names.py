"""Metric and label names are unique in both formats."""

from collections import Counter

import pytest
from prometheus_client import CollectorRegistry

from collector.model.metric import Kind, Values
from collector.model.snapshot import IDENTITY_LABELS, Identity
from collector.node.catalogue import CATALOGUE
from exporters.metrics_page.metric_family import families_of, is_info, text_label
from exporters.metrics_page.page import Page
from exporters.metrics_page.rendering import NODE_EXPORTERS, Options
from tests.collector.snapshots import scrape, snapshot
from tests.exporters.metrics_page.complete_page import HEALTH, complete_page
from tests.exporters.metrics_page.parsed import one_of_each, parsed, rendered

SUFFIXES = {
    "counter": ("_total", "_created"),
    "histogram": ("_bucket", "_count", "_sum", "_created"),
    "summary": ("", "_count", "_sum", "_created"),
    "info": ("_info",),
}


@pytest.mark.parametrize("openmetrics", [False, True])
def test_metric_names_are_unique(openmetrics: bool) -> None:
    kinds = parsed(complete_page(openmetrics=openmetrics), openmetrics=openmetrics).kinds
    suffixes = SUFFIXES if openmetrics else {**SUFFIXES, "counter": (), "info": ()}
    names = [name + suffix for name, kind in kinds.items() for suffix in {"", *suffixes.get(kind, ())}]
    assert names
    assert [name for name, number in Counter(names).items() if number > 1] == []


def test_every_metric_is_on_the_page() -> None:
    text = complete_page(openmetrics=False)
    for name in families_of(CATALOGUE):
        assert f"\n# TYPE {name} " in f"\n{text}"


def test_metric_labels_differ_from_identity_labels() -> None:
    reserved = {*Identity("c", "d", "r", "n").labels(), "le", "job", "instance"}
    for metric in (metric for metric in CATALOGUE.values() if (metric.name,) not in IDENTITY_LABELS):
        labels = [*metric.labels, *([text_label(metric)] if metric.kind is Kind.TEXT else [])]
        assert reserved.isdisjoint(labels), metric.name
        assert len(labels) == len(set(labels))


def test_a_counter_with_an_ambiguous_name_keeps_total_in_openmetrics() -> None:
    shown: Values = {("cassandra_pool_blocked", "request", "p"): 2, ("cassandra_pool_blocked_total", "request", "p"): 9}
    exposition = parsed(rendered(shown, openmetrics=True), openmetrics=True)
    assert exposition.kinds["cassandra_pool_blocked"] == "gauge"
    assert exposition.kinds["cassandra_pool_blocked_total"] == "unknown"
    assert exposition.of("cassandra_pool_blocked_total", path="request", pool="p") == 9


def test_decaying_percentiles_are_a_summary() -> None:
    exposition = parsed(rendered({("cassandra_client_request_decayed_seconds", "Read", "0.99"): 1000}))
    assert exposition.kinds["cassandra_client_request_decayed_seconds"] == "summary"


def test_texts_that_rarely_change_are_labels_of_one_series() -> None:
    values: Values = {
        ("cassandra_release_version",): "5.0.8",
        ("cassandra_operation_mode",): "NORMAL",
        ("cassandra_schema_version",): "abc",
        ("cassandra_cluster_name",): "c",
    }
    exposition = parsed(rendered(values, {"cluster": "c"})).values
    assert {(name, *sorted(labels)): value for (name, labels), value in exposition.items() if "series" not in name} == {
        ("cassandra_info", ("cluster", "c"), ("release_version", "5.0.8")): 1,
        ("cassandra_operation_mode", ("cluster", "c"), ("operation_mode", "NORMAL")): 1,
        ("cassandra_schema_version", ("cluster", "c"), ("schema_version", "abc")): 1,
    }
    assert [metric.name for metric in CATALOGUE.values() if is_info(metric)]


def test_node_exporter_metrics_can_be_left_out() -> None:
    page = Page(Options(machine=False), CollectorRegistry(), lambda: HEALTH, print, lambda: 10.0)
    page.add(snapshot(scrape(10.0, one_of_each())), Identity())
    kinds = parsed(page.get(openmetrics=False, compressed=False).decode()).kinds
    assert not [name for name in kinds if name.startswith("node_")]
    assert {"casstat_cpu_seconds_total", "cassandra_load_bytes"} <= kinds.keys()
    assert all(name.startswith("node_") for name in NODE_EXPORTERS)

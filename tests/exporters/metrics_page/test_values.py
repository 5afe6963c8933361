"""Exposed values, as parsed by prometheus_client, equal the values read, in both formats."""

from itertools import accumulate
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from collector.model.histogram import upper_bounds_of
from collector.model.metric import Kind, Metric, Series, Value, Values
from collector.model.snapshot import IDENTITY_LABELS
from collector.node.catalogue import CATALOGUE
from exporters.metrics_page.metric_family import Group, UpperBounds, is_info
from exporters.metrics_page.rendering import Options, Rendering, SeriesLines, document
from tests.every import every
from tests.examples import examples
from tests.exporters.metrics_page.parsed import Labels, SeriesValues, any_values, parsed, rendered, values_of

IDENTITY = {"cluster": 'a "cluster"', "dc": "dc\\1", "node": "10.0.0.1"}
SELF_METRICS = ("casstat_series", "casstat_series_limit")
UPPER_BOUNDS = UpperBounds()


def expected(shown: Values, *, openmetrics: bool) -> SeriesValues:
    """Return the expected series, computed independently of the exporter."""
    actual: SeriesValues = {}
    info: dict[str, str] = {}
    for (name, *values), value in shown.items():
        metric = CATALOGUE[name]
        labels: Labels = frozenset([*IDENTITY.items(), *zip(metric.labels, values, strict=True)])
        if (name,) in IDENTITY_LABELS:
            continue
        if isinstance(value, tuple):
            total = shown.get((metric.total, *values))
            actual.update(histogram(metric, value, labels, total, openmetrics=openmetrics))
        elif isinstance(value, str):
            if is_info(metric):
                info[name.removeprefix("cassandra_")] = value
            else:
                actual[name, labels | {(name.removeprefix("cassandra_"), value)}] = 1
        else:
            actual[name, labels] = float(value if metric.scale == 1 else value * metric.scale)
    if info:
        actual["cassandra_info", frozenset([*IDENTITY.items(), *info.items()])] = 1
    return actual


def histogram(
    metric: Metric, counts: tuple[int, ...], labels: Labels, total: Value | None, *, openmetrics: bool
) -> SeriesValues:
    cumulative = list(accumulate(counts))
    actual: SeriesValues = {
        (f"{metric.name}_bucket", labels | {("le", bound.le)}): cumulative[bound.bucket]
        for bound in UPPER_BOUNDS.bounds(metric.unit, len(counts))
    }
    actual[f"{metric.name}_bucket", labels | {("le", "+Inf")}] = cumulative[-1]
    if total is not None:
        assert isinstance(total, int | float)
        actual[f"{metric.name}_sum", labels] = total * CATALOGUE[metric.total].scale
    if total is not None or not openmetrics:
        actual[f"{metric.name}_count", labels] = cumulative[-1]
    return actual


@given(any_values(), st.booleans())
def test_every_value_is_exposed_exactly(shown: Values, openmetrics: bool) -> None:
    actual = parsed(rendered(shown, IDENTITY, openmetrics=openmetrics), openmetrics=openmetrics).values
    wanted = expected(shown, openmetrics=openmetrics)
    # Prometheus parses all values as floats.
    assert {key: float(value) for key, value in actual.items() if key[0] not in SELF_METRICS} == wanted


@given(any_values())
@settings(max_examples=examples(30))
def test_the_number_of_series_is_exposed(shown: Values) -> None:
    actual = parsed(rendered(shown))
    assert actual.of("casstat_series") == len(actual.values)


@every("openmetrics", [False, True])
@every(
    ("value", "kind"),
    [("text", "gauge"), (float("nan"), "gauge"), (float("inf"), "gauge"), (-1, "counter"), ((1, 2, 3), "gauge")],
)
def test_an_invalid_value_is_absent(value: Value, kind: str, openmetrics: bool) -> None:
    name = {"gauge": "cassandra_load_bytes", "counter": "cassandra_hints_total"}[kind]
    assert name not in rendered({(name,): value}, openmetrics=openmetrics)


@every("counts", [5, "five", (1, 2, 3), (-1,) + (0,) * 127, (0,) * 166])
def test_invalid_buckets_are_absent(counts: Value) -> None:
    shown: Values = {("cassandra_client_request_duration_seconds", "Read"): counts}
    assert "cassandra_client" not in rendered(shown)


def test_a_gauge_may_be_negative() -> None:
    assert parsed(rendered({("cassandra_compaction_pending",): -3})).of("cassandra_compaction_pending") == -3


def test_large_counts_are_exact() -> None:
    assert f"\ncassandra_hints_total {2**63 - 1}\n" in rendered({("cassandra_hints_total",): 2**63 - 1})


def test_metrics_missing_from_the_catalogue_are_absent() -> None:
    assert "unheard_of" not in rendered({("unheard_of_total",): 5, ("unheard_of", "a"): (1, 2)})


@every("openmetrics", [False, True])
@every("label", ['"', "\\", "\n", "\\n", '\\"', "a b", "ü€𝄞", "\r", "\x85\u2028", "}", ",", "=", "%d"])
def test_labels_survive_a_round_trip(label: str, openmetrics: bool) -> None:
    series: Series = ("cassandra_jvm_gc_total", label)
    text = rendered(
        {series: 7, ("cassandra_table_sstables_per_read", label, label): (1,) * 165}, openmetrics=openmetrics
    )
    actual = parsed(text, openmetrics=openmetrics)
    assert actual.of("cassandra_jvm_gc_total", collector=label) == 7
    bucket = actual.of("cassandra_table_sstables_per_read_bucket", keyspace=label, table=label, le="+Inf")
    assert bucket == 165


@pytest.mark.parametrize(("label", "written"), [("a\0b", "a\ufffdb"), ("\ud800", "\\ud800"), ("ü\ud800", "ü\\ud800")])
def test_characters_that_would_make_a_scrape_fail_are_replaced(label: str, written: str) -> None:
    text = rendered({("cassandra_jvm_gc_total", label): 7}).encode().decode()
    assert parsed(text).of("cassandra_jvm_gc_total", collector=written) == 7


class Reference(Collector):
    """Collects the values in `SMALL` as prometheus_client's metric families."""

    def collect(self) -> list[CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily]:
        counter = CounterMetricFamily("cassandra_client_requests", "", labels=("node", "operation"))
        counter.add_metric(("n", "Read"), 12)
        gauge = GaugeMetricFamily("cassandra_table_repaired_ratio", "", labels=("node", "keyspace", "table"))
        gauge.add_metric(("n", "ks", 't"1'), 0.125)
        durations = HistogramMetricFamily("cassandra_client_request_duration_seconds", "", labels=("node", "operation"))
        ends = [(repr(upper_bounds_of("seconds", 128)[index]), float(index + 1)) for index in (27, 40, 60)]
        durations.add_metric(("n", "Read"), [*ends, ("+Inf", 128.0)], sum_value=2.5)
        return [counter, gauge, durations]


SMALL: Values = {
    ("cassandra_client_requests_total", "Read"): 12,
    ("cassandra_table_repaired_ratio", "ks", 't"1'): 12.5,
    ("cassandra_client_request_duration_seconds", "Read"): (1,) * 128,
    ("cassandra_client_request_seconds_total", "Read"): 2_500_000,
}


def test_the_text_matches_the_output_of_prometheus_client() -> None:
    registry = CollectorRegistry()
    registry.register(Reference())
    reference = parsed(generate_latest(registry).decode())
    bounds = upper_bounds_of("seconds", 128)
    ours = parsed(rendered(SMALL, {"node": "n"}, upper_bounds=UpperBounds((bounds[27], bounds[40], bounds[60]))))
    read_labels: Labels = frozenset({("node", "n"), ("operation", "Read")})
    additional = {("cassandra_client_request_seconds_total", read_labels): 2.5}
    assert {key: value for key, value in ours.values.items() if key[0] not in SELF_METRICS} == {
        **reference.values,
        **additional,
    }
    assert reference.kinds.items() <= ours.kinds.items()


def test_a_histogram_that_changes_its_layout_keeps_its_labels() -> None:
    series: Series = ("cassandra_commitlog_commit_wait_seconds",)
    old, new = (parsed(rendered({series: (1,) * length})) for length in (165, 128))
    assert old.values.keys() == new.values.keys()
    labels = {float(dict(labels)["le"]) for name, labels in new.values if name.endswith("_bucket")}
    assert labels <= set(upper_bounds_of("seconds", 128))


def test_the_catalogue_has_every_kind() -> None:
    assert {metric.kind for metric in CATALOGUE.values()} == set(Kind)


@given(any_values(), st.data())
def test_a_page_does_not_depend_on_earlier_pages(base: Values, data: st.DataObject) -> None:
    rendering = Rendering(Options(limit=1_000_000), CATALOGUE, print, SeriesLines)
    invalid: st.SearchStrategy[Value] = st.sampled_from([-1, inf, "text", (0, 1)])
    for _ in range(3):
        chosen = data.draw(
            st.lists(st.sampled_from(list(base.items())), unique_by=lambda item: item[0]) if base else st.just([])
        )
        shown = {
            series: data.draw(st.just(value) | values_of(CATALOGUE[series[0]]) | invalid) for series, value in chosen
        }
        parts = rendering.parts(shown, IDENTITY, 0)
        for openmetrics in (False, True):
            text = document(parts, openmetrics=openmetrics)
            assert text + "# EOF\n" * openmetrics == rendered(shown, IDENTITY, openmetrics=openmetrics)


def test_cached_text_of_removed_series_is_deleted() -> None:
    lines = SeriesLines(CATALOGUE, UPPER_BOUNDS, IDENTITY)
    for number in range(3000):
        shown: Values = {
            ("cassandra_jvm_gc_total", f"collector {number}"): number,
            ("cassandra_table_sstables_per_read", "ks", f"t{number}"): (1,) * 165,
        }
        for name in ("cassandra_jvm_gc_total", "cassandra_table_sstables_per_read"):
            group = {series: value for series, value in shown.items() if series[0] == name}
            lines.body(CATALOGUE[name], Group(tuple(group), list(group.values())), shown)
        lines.keep(shown)
    heads = sum(len(items) for _, items in lines._heads._by_metric.values())
    assert heads + len(lines._text_heads) + len(lines._histograms) <= 1010

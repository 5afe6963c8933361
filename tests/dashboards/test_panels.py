"""Panels: their layout, threshold steps, queries and descriptions, and the command that writes the files."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from cli.commands.dashboards import command
from collector.model.metric import Aggregation
from dashboards.grafana import panel_model
from dashboards.grafana.build import line_steps, value_steps
from dashboards.grafana.influxdb_queries import PROMETHEUS_ONLY, InfluxDB
from dashboards.grafana.panel_model import (
    COLUMNS,
    CRITICAL,
    GOOD,
    WARNING,
    Dashboard,
    Heatmap,
    Line,
    Panel,
    Row,
    Split,
    TextPanel,
    TimeSeries,
    WorstTable,
    arrange,
    lines,
)
from dashboards.grafana.prometheus_queries import Prometheus
from dashboards.signals.all_signals import SIGNALS
from dashboards.signals.signal import Unit
from dashboards.thresholds import THRESHOLDS, Threshold
from tests.dashboards.served_metrics import families

SIZES = st.lists(st.tuples(st.integers(1, COLUMNS), st.integers(1, 12)), max_size=30)
ROOT = Path(__file__).parents[2]


@given(SIZES, st.integers(0, 100))
def test_panels_fit_the_dashboard_and_do_not_overlap(sizes: list[tuple[int, int]], first: int) -> None:
    panels = [Panel(title="x", width=width, height=height) for width, height in sizes]
    taken: set[tuple[int, int]] = set()
    for panel, position in arrange(panels, first):
        assert (position.width, position.height) == (panel.width, panel.height)
        cells = {(position.x + x, position.y + y) for x in range(position.width) for y in range(position.height)}
        assert taken.isdisjoint(cells)
        assert all(x < COLUMNS and y >= first for x, y in cells)
        taken |= cells


def test_a_panel_that_is_too_wide_is_rejected() -> None:
    with pytest.raises(ValueError, match="25 columns"):
        list(arrange([Panel(title="x", width=25)], 0))


@pytest.mark.parametrize(
    ("signal", "threshold", "expected"),
    [
        # "More than 30 compactions" means at least 31.
        ("compactions_pending", Threshold(30, 100), [(None, GOOD), (31, WARNING), (101, CRITICAL)]),
        ("read_p99", Threshold(0.1, 1), [(None, GOOD), (0.1, WARNING), (1, CRITICAL)]),
        ("hints", Threshold(0), [(None, GOOD), (1e-9, WARNING)]),
        ("unavailables", Threshold(None, 2), [(None, GOOD), (2, CRITICAL)]),
        ("disk_free_share", Threshold(0.2, 0.1, below=True), [(None, CRITICAL), (0.1, WARNING), (0.2, GOOD)]),
        ("disk_free_share", Threshold(0.2, None, below=True), [(None, WARNING), (0.2, GOOD)]),
        ("disk_free_share", Threshold(None, 0.1, below=True), [(None, CRITICAL), (0.1, GOOD)]),
    ],
)
def test_value_steps_begin_at_the_thresholds(
    signal: str, threshold: Threshold, expected: list[tuple[float | None, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(THRESHOLDS, signal, threshold)
    assert value_steps(Line(signal)) == expected


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [
        (Threshold(0.2, 0.1, below=True), [(None, GOOD), (0.1, CRITICAL), (0.2, WARNING)]),
        (Threshold(0.2, None, below=True), [(None, GOOD), (0.2, WARNING)]),
        (Threshold(None, 0.1, below=True), [(None, GOOD), (0.1, CRITICAL)]),
        (Threshold(0.1, 0.2), [(None, GOOD), (0.1, WARNING), (0.2, CRITICAL)]),
    ],
)
def test_a_threshold_line_has_the_colour_of_the_alert_that_fires_beyond_it(
    threshold: Threshold, expected: list[tuple[float | None, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(THRESHOLDS, "disk_free_share", threshold)
    assert line_steps(Line("disk_free_share")) == expected


def test_a_signal_without_a_threshold_is_green() -> None:
    assert value_steps(Line("jvm_threads")) == [(None, GOOD)]


def test_the_worst_value_is_the_lowest_if_low_values_are_bad() -> None:
    (query,) = Prometheus().queries(WorstTable(lines("disk_free_share"), split=Split.NODE), tables=False)
    assert query.text.startswith("bottomk($topn, min_over_time((")
    (query,) = Prometheus().queries(WorstTable(lines("disk_util"), split=Split.NODE), tables=False)
    assert query.text.startswith("topk($topn, max_over_time((")
    (query,) = Prometheus().queries(
        TimeSeries(lines("repaired_share"), labels=("keyspace", "table"), top=True), tables=False
    )
    assert " and bottomk($topn, min_over_time((" in query.text
    (query,) = InfluxDB().queries(WorstTable(lines("repaired_share"), split=Split.NODE), tables=False)
    assert query.text.startswith('SELECT min("value")')


def test_panels_and_alerts_agree_on_whether_low_values_are_bad() -> None:
    both = SIGNALS.keys() & THRESHOLDS.keys()
    assert {name for name in both if SIGNALS[name].low_is_worse} == {name for name in both if THRESHOLDS[name].below}


def test_low_values_are_bad_for_signals_aggregated_by_min() -> None:
    lowest = {
        name for name, signal in SIGNALS.items() if getattr(signal.expression, "aggregation", None) is Aggregation.MIN
    }
    assert lowest
    assert lowest <= {name for name, signal in SIGNALS.items() if signal.low_is_worse}


def test_bounded_signals_are_clamped() -> None:
    for name, signal in SIGNALS.items():
        (query,) = Prometheus().queries(TimeSeries(lines(name)), tables=False)
        assert query.text.startswith(("clamp(", "(clamp(")) == signal.bounded, name
        if name not in PROMETHEUS_ONLY:
            *_, last = InfluxDB().queries(TimeSeries(lines(name)), tables=False)
            assert last.text.startswith(("SELECT (abs(", "(abs(")) == signal.bounded, name
    # The ratios listed below are sums over several collectors, sources or nodes, and may exceed 1.
    unbounded = {name for name, signal in SIGNALS.items() if signal.unit is Unit.RATIO and not signal.bounded}
    assert unbounded == {"gc_share", "gc_pause_share", "source_wall"}


def test_a_query_matches_tables_only_where_the_dashboard_has_the_variable() -> None:
    panel = TimeSeries(lines("table_reads"), split=Split.CLUSTER, labels=("keyspace", "table"))
    stores: tuple[tuple[Prometheus | InfluxDB, str], ...] = (
        (Prometheus(), 'table=~"$table"'),
        (InfluxDB(), '"table" =~ /^$table$/'),
    )
    for store, chosen in stores:
        assert [chosen in query.text for tables in (True, False) for query in store.queries(panel, tables)] == [
            True,
            False,
        ]


def test_a_heat_map_needs_buckets() -> None:
    with pytest.raises(TypeError, match="the buckets that a heat map shows"):
        Prometheus().queries(Heatmap(lines("reads")), tables=False)


def test_influxdb_calculates_within_measurements_and_grafana_across_them() -> None:
    (within,) = InfluxDB().queries(TimeSeries(lines("cpu_busy")), tables=False)
    assert within.visible
    numerator, denominator, ratio, heap_used = InfluxDB().queries(
        TimeSeries(lines("heap_share", "heap_used")), tables=False
    )
    assert [query.visible for query in (numerator, denominator, ratio, heap_used)] == [False, False, True, True]
    assert (ratio.form, ratio.text) == ("math", "(abs(($A / $B)) - abs(($A / $B) - 1) + 1) / 2")
    *_, rest = InfluxDB().queries(TimeSeries(lines("swap_used")), tables=False)
    assert rest.text == "$A - $B"


def test_the_last_step_of_a_slow_metric_ends_at_the_end_of_the_time_range() -> None:
    (fast,) = InfluxDB().queries(TimeSeries(lines("reads")), tables=False)
    assert "GROUP BY time($__interval)," in fast.text
    (slow,) = InfluxDB().queries(TimeSeries(lines("load_bytes"), split=Split.CLUSTER), tables=False)
    assert slow.text.count("time >= ${__from}ms AND time < ${__to}ms") == slow.text.count("FROM")
    assert slow.text.count("GROUP BY time($__interval, ${__to}ms),") == slow.text.count("FROM")


def test_a_worst_values_table_in_influxdb_has_the_columns_of_its_panel() -> None:
    (query,) = InfluxDB().queries(WorstTable(lines("max_partition"), split=Split.CLUSTER, labels=("table",)), True)
    assert query.text.endswith('GROUP BY "cluster", "table"')


def test_panels_of_different_sizes_that_lose_a_neighbour_get_the_default_size() -> None:
    wide, narrow = TimeSeries(lines("reads"), width=12, height=9), TimeSeries(lines("writes"))
    heat = Heatmap(lines("read_p99"))
    sizes = []
    for panels in ((heat, wide, narrow), (wide, narrow), (heat, wide)):
        (supported,) = InfluxDB().dashboards([Dashboard("x", "X", "", (Row("row", panels),))])
        sizes.append([(panel.width, panel.height) for panel in supported.rows[0].panels])
    assert sizes == [[(8, 7), (8, 7)], [(12, 9), (8, 7)], [(12, 9)]]


def test_a_ratio_that_grafana_divides_is_absent_where_the_denominator_is_0() -> None:
    _, denominator, ratio = InfluxDB().queries(TimeSeries(lines("cache_hits")), tables=False)
    assert denominator.text.startswith('SELECT "value" FROM (')
    assert 'WHERE "value" != 0 GROUP BY ' in denominator.text
    assert ratio.form == "math"


def test_influxdb_dashboards_omit_unsupported_panels_and_explain_why() -> None:
    heat, self_metrics, mixed = (
        Heatmap(lines("read_p99")),
        TimeSeries(lines("sink_lag")),
        TimeSeries(lines("load_operations", "reads")),
    )
    dashboard = Dashboard("x", "X", "", (Row("gone", (heat, self_metrics)), Row("left", (heat, mixed))))
    (supported,) = InfluxDB().dashboards([dashboard])
    left, about = supported.rows
    assert [[line.signal_name for line in panel.lines] for panel in left.panels] == [["reads"]]
    assert isinstance(about.panels[0], TextPanel)
    assert InfluxDB().dashboards([Dashboard("x", "X", "", (Row("gone", (heat, self_metrics)),))]) == []


def test_each_reason_for_absence_occurs_once() -> None:
    panel = TimeSeries(lines("read_p50", "read_p99", "heap_used"))
    assert panel_model.absences(panel) == ["Absent while there are no requests.", panel_model.DEFAULT_ABSENCE]


def test_client_metrics_are_documented() -> None:
    text = (ROOT / "docs" / "dashboards.md").read_text()
    names = [name for name in families() if name.startswith("casstat_load_")]
    assert names
    assert [name for name in names if f"`{name}`" not in text] == []


def test_alerts_link_to_published_runbooks(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["write", str(tmp_path), "--runbooks", "https://wiki.example/books/"])
    assert result.exit_code == 0, result.output
    rules = (tmp_path / "rules" / "casstat-cluster.yml").read_text()
    assert "runbook_url: https://wiki.example/books/CassandraNodesUnreachable.md\n" in rules


def test_the_runbook_location_must_be_a_url(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["write", str(tmp_path), "--runbooks", "docs/runbooks"])
    assert result.exit_code == 2
    assert "'docs/runbooks' is not a URL" in result.output
    assert CliRunner().invoke(command, ["write", str(tmp_path), "--runbooks", "http://[::1"]).exit_code == 0


def test_the_written_rules_select_the_given_job(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["write", str(tmp_path), "--job", "kubernetes-pods"])
    assert result.exit_code == 0, result.output
    rules = (tmp_path / "rules" / "casstat-cluster.yml").read_text()
    assert 'job="kubernetes-pods"' in rules
    assert 'job="casstat"' not in rules

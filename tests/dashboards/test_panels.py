"""The parts that dashboards are made of."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from cli.commands.dashboards import command
from dashboards.grafana import descriptions
from dashboards.grafana.influxdb_queries import InfluxDB
from dashboards.grafana.layout import COLUMNS, arrange
from dashboards.grafana.panel_colours import CRITICAL, GOOD, WARNING
from dashboards.grafana.panel_model import (
    Dashboard,
    Heatmap,
    Line,
    Panel,
    Row,
    Split,
    TextPanel,
    TimeSeries,
    WorstTable,
    lines,
)
from dashboards.grafana.panel_query import Store
from dashboards.grafana.prometheus_queries import Prometheus
from dashboards.grafana.threshold_steps import line_steps, value_steps
from dashboards.signals.all_signals import SIGNALS
from dashboards.signals.signal import Unit
from dashboards.thresholds import THRESHOLDS, Threshold
from tests.dashboards.served_metrics import families
from tests.test_docs import ROOT

SIZES = st.lists(st.tuples(st.integers(1, COLUMNS), st.integers(1, 12)), max_size=30)


@given(SIZES, st.integers(0, 100))
def test_panels_stand_on_the_board_and_none_on_another(sizes: list[tuple[int, int]], first: int) -> None:
    panels = [Panel(title="x", width=width, height=height) for width, height in sizes]
    taken: set[tuple[int, int]] = set()
    for panel, place in arrange(panels, first):
        assert (place.width, place.height) == (panel.width, panel.height)
        cells = {(place.x + x, place.y + y) for x in range(place.width) for y in range(place.height)}
        assert taken.isdisjoint(cells)
        assert all(x < COLUMNS and y >= first for x, y in cells)
        taken |= cells


def test_a_panel_that_is_too_wide_is_refused() -> None:
    with pytest.raises(ValueError, match="25 columns"):
        list(arrange([Panel(title="x", width=25)], 0))


@pytest.mark.parametrize(
    ("signal", "threshold", "expected"),
    [
        # More than 30 of what is counted are 31.
        ("compactions_pending", Threshold(30, 100), [(None, GOOD), (31, WARNING), (101, CRITICAL)]),
        ("read_p99", Threshold(0.1, 1), [(None, GOOD), (0.1, WARNING), (1, CRITICAL)]),
        ("hints", Threshold(0), [(None, GOOD), (1e-9, WARNING)]),
        ("unavailables", Threshold(None, 2), [(None, GOOD), (2, CRITICAL)]),
        ("disk_free_share", Threshold(0.2, 0.1, below=True), [(None, CRITICAL), (0.1, WARNING), (0.2, GOOD)]),
        ("disk_free_share", Threshold(0.2, None, below=True), [(None, WARNING), (0.2, GOOD)]),
        ("disk_free_share", Threshold(None, 0.1, below=True), [(None, CRITICAL), (0.1, GOOD)]),
    ],
)
def test_steps_of_colour(
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
def test_a_line_has_the_colour_of_the_alert_that_begins_there(
    threshold: Threshold, expected: list[tuple[float | None, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(THRESHOLDS, "disk_free_share", threshold)
    assert line_steps(Line("disk_free_share")) == expected


def test_what_has_no_threshold_is_well() -> None:
    assert value_steps(Line("jvm_threads")) == [(None, GOOD)]


def test_the_worst_of_what_should_be_high_is_the_least() -> None:
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


def test_low_values_are_the_bad_ones_for_panels_and_alerts_alike() -> None:
    both = SIGNALS.keys() & THRESHOLDS.keys()
    assert {name for name in both if SIGNALS[name].low_is_worse} == {name for name in both if THRESHOLDS[name].below}


def test_what_is_the_least_of_several_is_worse_when_low() -> None:
    least = {name for name, signal in SIGNALS.items() if getattr(signal.expression, "aggregation", "") == "min"}
    assert least <= {name for name, signal in SIGNALS.items() if signal.low_is_worse}


def test_a_share_is_at_most_the_whole() -> None:
    for name, signal in SIGNALS.items():
        (query,) = Prometheus().queries(TimeSeries(lines(name)), tables=False)
        assert query.text.startswith(("clamp(", "(clamp(")) == signal.bounded, name
    # Those that are not are sums over several collectors, sources or nodes.
    unbounded = {name for name, signal in SIGNALS.items() if signal.unit is Unit.RATIO and not signal.bounded}
    assert unbounded == {"gc_share", "gc_pause_share", "source_wall"}


def test_tables_are_chosen_where_there_are_variables_for_them() -> None:
    panel = TimeSeries(lines("table_reads"), split=Split.CLUSTER, labels=("keyspace", "table"))
    stores: tuple[tuple[Store, str], ...] = ((Prometheus(), 'table=~"$table"'), (InfluxDB(), '"table" =~ /^$table$/'))
    for store, chosen in stores:
        assert [chosen in query.text for tables in (True, False) for query in store.queries(panel, tables)] == [
            True,
            False,
        ]


def test_a_heat_map_of_what_has_no_buckets_is_a_mistake() -> None:
    with pytest.raises(TypeError, match="needs the buckets"):
        Prometheus().queries(Heatmap(lines("reads")), tables=False)


def test_influxdb_calculates_within_a_measurement_and_grafana_across() -> None:
    (within,) = InfluxDB().queries(TimeSeries(lines("cpu_busy")), tables=False)
    assert within.visible
    part, whole, ratio, other = InfluxDB().queries(TimeSeries(lines("heap_share", "heap_used")), tables=False)
    assert [each.visible for each in (part, whole, ratio, other)] == [False, False, True, True]
    assert (ratio.form, ratio.text) == ("math", "$A / $B")
    *_, rest = InfluxDB().queries(TimeSeries(lines("swap_used")), tables=False)
    # The whole comes first.
    assert rest.text == "$A - $B"


def test_what_influxdb_lacks_is_left_out_and_told() -> None:
    heat, own, mixed = (
        Heatmap(lines("read_p99")),
        TimeSeries(lines("sink_lag")),
        TimeSeries(lines("load_operations", "reads")),
    )
    dashboard = Dashboard("x", "X", "", (Row("gone", (heat, own)), Row("left", (heat, mixed))))
    (found,) = InfluxDB().dashboards([dashboard])
    left, about = found.rows
    assert [[line.signal_name for line in panel.lines] for panel in left.panels] == [["reads"]]
    assert isinstance(about.panels[0], TextPanel)
    assert InfluxDB().dashboards([Dashboard("x", "X", "", (Row("gone", (heat, own)),))]) == []


def test_reasons_for_nothing_are_told_once() -> None:
    panel = TimeSeries(lines("read_p50", "read_p99", "heap_used"))
    assert descriptions.absences(panel) == ["Absent while there are no requests.", descriptions.DEFAULT_ABSENCE]


def test_what_clients_are_to_tell_is_documented() -> None:
    text = (ROOT / "docs" / "dashboards.md").read_text()
    for name in families():
        assert not name.startswith("casstat_load_") or f"`{name}`" in text


def test_alerts_name_the_runbooks_where_people_have_put_them(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["write", str(tmp_path), "--runbooks", "https://wiki.example/books/"])
    assert done.exit_code == 0, done.output
    rules = (tmp_path / "rules" / "casstat-cluster.yml").read_text()
    assert "runbook_url: https://wiki.example/books/CassandraNodesUnreachable.md\n" in rules


def test_runbooks_must_be_a_url(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["write", str(tmp_path), "--runbooks", "docs/runbooks"])
    assert done.exit_code == 2
    assert "'docs/runbooks' is not a URL" in done.output


def test_the_rules_select_the_job_that_is_chosen(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["write", str(tmp_path), "--job", "kubernetes-pods"])
    assert done.exit_code == 0, done.output
    rules = (tmp_path / "rules" / "casstat-cluster.yml").read_text()
    assert 'job="kubernetes-pods"' in rules
    assert 'job="casstat"' not in rules

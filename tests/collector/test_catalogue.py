"""The rules that every metric in the catalogue must follow."""

import re
from collections import Counter
from collections.abc import Callable

from collector.model.mbean import METRICS, VALUES
from collector.model.metric import Aggregation, Kind, Metric, ScrapeInterval, WideColumn
from collector.node.catalogue import BEANS, CATALOGUE, HOST, REPORTS
from collector.node.host import busy_processes
from collector.node.nodetool.reports.local_operations import METRICS as SUMS
from exporters.rows.operation_columns import Operations
from exporters.rows.view import View
from tests.every import every

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
# Counters that keep their node_exporter names, which do not end in "_total".
NOT_IN_TOTAL = {"node_netstat_Tcp_RetransSegs"}
UNITS = {"seconds", "bytes", "1", "ratio", ""}
OPERATIONS = [Operations(), Operations("ks"), Operations("ks", "t1")]


def violations(holds: Callable[[Metric], bool]) -> list[str]:
    """Return the names of the metrics for which the rule does not hold."""
    return [metric.name for metric in CATALOGUE.values() if not holds(metric)]


def test_every_metric_name_is_valid_in_prometheus() -> None:
    assert violations(lambda metric: bool(NAME.fullmatch(metric.name))) == []
    assert [metric.name for metric in CATALOGUE.values()] == list(CATALOGUE)


def test_every_help_text_is_one_line_that_ends_with_a_full_stop() -> None:
    line = re.compile(r"[A-Z0-9].*[^.\s]\.")
    assert violations(lambda metric: bool(line.fullmatch(metric.help))) == []


def test_every_label_is_valid_and_unique() -> None:
    def legal(metric: Metric) -> bool:
        fits = all(NAME.fullmatch(label) and not label.startswith("__") and label != "le" for label in metric.labels)
        return fits and len(set(metric.labels)) == len(metric.labels)

    assert violations(legal) == []


def test_counter_names_and_no_others_end_in_total() -> None:
    wrong = violations(lambda metric: metric.name.endswith("_total") == (metric.kind is Kind.COUNTER))
    assert set(wrong) == NOT_IN_TOTAL


def test_every_unit_is_a_base_unit_and_part_of_the_name() -> None:
    assert {metric.unit for metric in CATALOGUE.values()} <= UNITS
    assert violations(lambda metric: (metric.unit == "") == (metric.kind is Kind.TEXT)) == []
    assert violations(lambda metric: metric.unit in ("", "1") or metric.unit in metric.name.split("_")) == []
    assert violations(lambda metric: metric.scale > 0) == []


def test_the_counters_of_a_histogram_exist_and_have_its_labels() -> None:
    def paired(metric: Metric) -> bool:
        named = [CATALOGUE[name] for name in (metric.count, metric.total) if name]
        return all(counter.kind is Kind.COUNTER and counter.labels == metric.labels for counter in named)

    assert violations(paired) == []
    assert violations(lambda metric: metric.kind is Kind.HISTOGRAM or not (metric.count or metric.total)) == []


def test_the_total_of_every_histogram_is_in_microseconds() -> None:
    totals = [(CATALOGUE[metric.total], metric) for metric in CATALOGUE.values() if metric.total]
    assert totals
    assert all(total.unit == metric.unit == "seconds" and total.scale == 1e-6 for total, metric in totals)


def test_no_histogram_is_scaled() -> None:
    assert violations(lambda metric: metric.kind is not Kind.HISTOGRAM or metric.scale == 1.0) == []


def test_each_column_names_one_series_of_its_metric() -> None:
    assert violations(lambda metric: all(len(column.labels) == len(metric.labels) for column in metric.columns)) == []
    assert violations(lambda metric: not metric.columns or metric.kind in (Kind.COUNTER, Kind.GAUGE)) == []


def test_columns_use_only_metrics_that_are_read_on_every_tick() -> None:
    assert violations(lambda metric: not metric.columns or metric.scrape_interval is ScrapeInterval.TICK) == []


def test_the_catalogue_contains_every_metric_of_every_source_and_report() -> None:
    rows = [*(bean.metric for bean in BEANS), *(metric for part in HOST for metric in part.metrics)]
    rows += busy_processes.METRICS
    rows += [metric for report in REPORTS for metric in getattr(report, "METRICS", ())]
    assert {metric.name for metric in rows} | {metric.name for metric in SUMS} == set(CATALOGUE)


def test_every_gauge_defines_how_nodes_are_aggregated() -> None:
    numbers = {Aggregation.SUM, Aggregation.MEAN, Aggregation.MAX, Aggregation.MIN}
    assert violations(lambda metric: metric.kind is not Kind.GAUGE or metric.across in numbers) == []


def test_ratios_are_never_summed() -> None:
    rates = {Aggregation.SUM, Aggregation.MEAN}
    assert violations(lambda metric: metric.kind is not Kind.COUNTER or metric.aggregation in rates) == []
    assert violations(lambda metric: metric.unit != "ratio" or metric.aggregation is not Aggregation.SUM) == []
    # If a counter of seconds is shown as a percentage, its rate is a ratio, which is averaged over the nodes.
    assert violations(lambda metric: not _has_percent(metric) or metric.aggregation is Aggregation.MEAN) == []


def _has_percent(metric: Metric) -> bool:
    return any(column.name.endswith("_pct") for column in metric.columns)


def test_no_two_beans_read_the_same_series() -> None:
    readers = Counter((bean.metric.name, bean.name, bean.attribute) for bean in BEANS)
    assert set(readers.values()) == {1}
    assert max(Counter((bean.metric.name, bean.fixed) for bean in BEANS).values()) == 1
    several = [name for name, number in Counter(bean.metric.name for bean in BEANS).items() if number > 1]
    assert all(bean.fixed for bean in BEANS if bean.metric.name in several)


def test_a_beans_labels_match_those_of_its_metric() -> None:
    for bean in BEANS:
        assert set(bean.only) <= set(bean.placeholders) <= set(bean.metric.labels), bean
        fixed = len(bean.fixed)
        assert bean.many is not None or len(bean.placeholders) + fixed == len(bean.metric.labels), bean
        assert bean.metric.labels[: len(bean.placeholders)] == bean.placeholders, bean
        assert not (fixed and bean.many), bean


def test_only_histograms_are_read_by_operation() -> None:
    for bean in BEANS:
        assert (bean.attribute == VALUES) == (bean.metric.kind is Kind.HISTOGRAM), bean


def test_no_bean_is_read_twice_under_an_older_name() -> None:
    assert not [bean.name for bean in BEANS if bean.name.startswith(METRICS + "type=ColumnFamily")]


def test_machine_subjects_have_unique_names() -> None:
    assert len({part.name for part in HOST}) == len(HOST)


def wide(operations: Operations) -> View:
    return View(operations, disk="vda", interface="eth0", wide=True)


@every("operations", OPERATIONS)
def test_names_and_headers_of_the_wide_view_are_unique(operations: Operations) -> None:
    columns = wide(operations).columns
    for words in ([column.name for column in columns], [column.header for column in columns]):
        assert [word for word, number in Counter(words).items() if number > 1] == []


@every("operations", OPERATIONS)
def test_column_names_are_identifiers_and_headers_contain_no_spaces(operations: Operations) -> None:
    for column in wide(operations).columns:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", column.name)
        assert column.header.strip()
        assert len(column.header.split()) == 1
        assert 0 <= column.digits <= 4


@every("operations", OPERATIONS)
def test_the_default_command_shows_only_metrics_read_on_every_tick(operations: Operations) -> None:
    view = View(operations, disk="vda", interface="eth0", wide=True, compactions=True)
    for name in view.metrics(view.columns):
        assert CATALOGUE[name].scrape_interval is ScrapeInterval.TICK


def test_every_column_of_a_metric_is_in_the_wide_view() -> None:
    def names(columns: tuple[WideColumn, ...]) -> list[str]:
        return [column.name for column in columns]

    columns = {column.name for column in wide(Operations()).columns}
    assert {name for metric in CATALOGUE.values() for name in names(metric.columns)} <= columns

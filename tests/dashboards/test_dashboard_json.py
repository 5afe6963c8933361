"""The committed dashboards: their structure and variables, and each panel's queries and description."""

import json
import re
from pathlib import Path

import pytest
import yaml

from collector.model.metric import ScrapeInterval
from collector.node.catalogue import CATALOGUE
from collector.node.selection import slowest_interval
from dashboards.grafana import dashboard_files
from dashboards.grafana.definitions.all_dashboards import DASHBOARDS
from dashboards.grafana.panel_model import CRITICAL, GOOD, WARNING, Line
from dashboards.grafana.prometheus_queries import CLIENT_SIGNALS
from dashboards.promql import NODE_LABELS
from dashboards.signals.all_signals import SIGNALS
from tests.dashboards import queries, served_metrics
from tests.dashboards.queries import Choice, Json, Query
from tests.every import every

BUILT_IN = {"timeseries", "stat", "table", "heatmap", "state-timeline", "text"}
CASES = [(store, dashboard) for store in dashboard_files.STORES for dashboard in queries.dashboards(store)]
EVERY = every(("store", "dashboard"), CASES)
PROMETHEUS = [
    query
    for dashboard in queries.dashboards("prometheus")
    for query in (*queries.prometheus(dashboard), *queries.annotations(dashboard))
]
INFLUXDB = [
    query
    for dashboard in queries.dashboards("influxdb")
    for query in (*queries.influxdb(dashboard), *queries.annotations(dashboard))
]
NAME = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{")
SELECTOR = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\}")
WINDOW = re.compile(r"\[([^\]]*)\]")
TWO_STEPS = "${__interval}${__interval_ms}ms"
MEASUREMENT = re.compile(r'FROM "([^"]+)"')
UNTIL_END = "time < ${__to}ms"


def query_panels(dashboard: Json) -> list[Json]:
    return [panel for panel in queries.panels(dashboard) if panel["type"] != "text"]


def test_both_stores_have_the_dashboards() -> None:
    names = {
        store: {name.removesuffix(".json") for name, _ in dashboard_files.packaged_dashboards(store)}
        for store in dashboard_files.STORES
    }
    assert names["prometheus"] == {dashboard.name for dashboard in DASHBOARDS}
    # Self-metrics are available only through Prometheus.
    assert names["influxdb"] == names["prometheus"] - {"agent"}


@EVERY
def test_a_dashboard_has_the_common_settings(store: str, dashboard: Json) -> None:
    assert dashboard["title"].startswith("Cassandra: ")
    assert dashboard["description"]
    assert dashboard["editable"] is False
    assert dashboard["timezone"] == "browser"
    assert dashboard["graphTooltip"] == 1
    assert dashboard["refresh"] == "10s"
    assert dashboard["schemaVersion"] >= 39
    assert "id" not in dashboard
    assert {"casstat", store} <= set(dashboard["tags"])
    assert dashboard["time"]["to"] == "now"


@EVERY
def test_panel_titles_are_noun_phrases(store: str, dashboard: Json) -> None:
    titles = [panel["title"] for panel in dashboard["panels"]]
    assert [title for title in titles if re.search(r"\b(that|which|who|nobody|what|in use)\b", title, re.I)] == []


def test_uids_are_stable_and_unique() -> None:
    uids = [dashboard["uid"] for _, dashboard in CASES]
    assert len(set(uids)) == len(uids)
    assert {"casstat-overview", "casstat-node", "casstat-overview-influxdb"} <= set(uids)
    assert all(len(uid) <= 40 for uid in uids)


@EVERY
def test_a_panel_has_a_title_description_unit_and_data_source(store: str, dashboard: Json) -> None:
    for panel in queries.panels(dashboard):
        assert panel["type"] in BUILT_IN, panel["title"]
        assert panel["title"]
        assert panel["description"]
    assert query_panels(dashboard)
    for panel in query_panels(dashboard):
        assert panel["targets"], panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        # Grafana shows this text in a panel that has no data.
        reason = panel["fieldConfig"]["defaults"]["noValue"]
        assert "Absent" in reason
        assert all(part in panel["description"] for part in re.findall(r"Absent[^.]*\.", reason))
        assert panel["datasource"] == {"type": store, "uid": "${datasource}"}


@EVERY
def test_a_description_explains_each_signal_and_its_absence(store: str, dashboard: Json) -> None:
    name = dashboard["uid"].removeprefix("casstat-").removesuffix("-influxdb")
    (definition,) = [definition for definition in DASHBOARDS if definition.name == name]
    lines_by_title: dict[str, list[tuple[Line, ...]]] = {}
    for row in definition.rows:
        for panel in row.panels:
            lines_by_title.setdefault(panel.name, []).append(panel.lines)
    for rendered in query_panels(dashboard):
        title = rendered["title"].removesuffix(" (max)")
        lines = lines_by_title[title].pop(0)
        served = [line for line in lines if store == "prometheus" or not _prometheus_only(line)]
        assert served
        for line in served:
            assert line.signal.help in rendered["description"]
            assert line.signal.absent in rendered["description"]


def _prometheus_only(line: Line) -> bool:
    return bool(
        re.search(r"casstat_(load|tick|source|sink|journal|series|events)|\bprocess_", str(line.signal.expression))
    )


@EVERY
def test_panels_have_unique_ids_and_do_not_overlap(store: str, dashboard: Json) -> None:
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(numbers)) == len(numbers)
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        grid = panel["gridPos"]
        assert grid["x"] + grid["w"] <= 24
        cells = {
            (x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])
        }
        assert taken.isdisjoint(cells), panel["title"]
        taken |= cells


def test_the_overview_has_at_most_30_panels() -> None:
    panels = {store: query_panels(dashboard) for store, dashboard in CASES if "overview" in dashboard["uid"]}
    assert panels.keys() == set(dashboard_files.STORES)
    assert all(0 < len(of_store) <= 30 for of_store in panels.values())


@EVERY
def test_variables_narrow_the_selection_from_cluster_to_table(store: str, dashboard: Json) -> None:
    variables = dashboard["templating"]["list"]
    names = [variable["name"] for variable in variables]
    assert names[0] == "datasource"
    assert variables[0]["query"] == store
    chosen = [name for name in names[1:] if name not in ("by", "topn")]
    texts = json.dumps(dashboard["panels"])
    assert ("by" in names) == ("$by" in texts or "${by:raw}" in texts)
    assert ("topn" in names) == ("$topn" in texts)
    node_variables = ["job", *NODE_LABELS] if store == "prometheus" else list(NODE_LABELS)
    assert chosen in (node_variables, [*node_variables, "keyspace", "table"])
    for depth, variable in enumerate(variables[1 : len(chosen) + 1]):
        # Each variable is refreshed when the time range changes, and allows several or all values to be selected.
        assert (variable["refresh"], variable["multi"], variable["includeAll"]) == (2, True, True)
        # "All" must not match series that lack the label. For jobs, "All" is the list of jobs that serve casstat's
        # metrics.
        assert variable.get("allValue") == (None if variable["name"] == "job" else ".+")
        text = variable["query"]["query"] if store == "prometheus" else variable["query"]
        assert text.startswith("label_values(" if store == "prometheus" else "SHOW TAG VALUES")
        narrowed = min(depth, len(node_variables)) if variable["name"] != "table" or store == "prometheus" else depth
        assert all(f"${before}" in text for before in chosen[:narrowed])


@EVERY
def test_queries_use_only_defined_variables(store: str, dashboard: Json) -> None:
    defined = {variable["name"] for variable in dashboard["templating"]["list"]}
    defined |= {"__rate_interval", "__interval", "__interval_ms", "__range", "__from", "__to", "timeFilter"}
    texts = list(queries.all_queries(dashboard))
    assert texts
    for query in texts:
        assert queries.variables(query) <= defined, query
        assert "$" not in re.sub(r"\$/", "/", queries.interpolated(query, Choice(from_s=1, to_s=61))), query


@EVERY
def test_links_lead_to_existing_dashboards(store: str, dashboard: Json) -> None:
    uids = {target["uid"] for target_store, target in CASES if target_store == store}
    assert {link["url"].removeprefix("/d/") for link in dashboard["links"]} == uids
    assert all(link["keepTime"] and link["includeVars"] for link in dashboard["links"])
    for uid in re.findall(r'"/d/([^?"]+)\?', json.dumps(dashboard["panels"])):
        assert uid in uids


@EVERY
def test_a_dashboard_has_the_annotations_available_in_its_store(store: str, dashboard: Json) -> None:
    names = [annotation["name"] for annotation in dashboard["annotations"]["list"]]
    expected = {
        "prometheus": ["Restarts", "Nodes unreachable", "Schema changes", "Runs begin", "Runs end", "Phases"],
        "influxdb": ["Runs, restarts, nodes", "Repairs, streams, drops", "Collections, flushes"],
    }
    assert names == expected[store]


@every("query", PROMETHEUS)
def test_a_prometheus_query_uses_existing_metrics_and_functions_that_fit_them(query: Query) -> None:
    text = query.text
    names = NAME.findall(text)
    assert names
    # This assertion detects renamed metrics.
    assert set(names) <= served_metrics.series(), set(names) - served_metrics.series()
    for name, matchers in SELECTOR.findall(text):
        expected = ("cluster",) if name.startswith("casstat_load_") else ("job", *NODE_LABELS)
        assert all(f'{label}=~"${label}"' in matchers for label in expected), name
        labels = re.findall(r"(\w+)=", matchers)
        assert len(labels) == len(set(labels))
    for function, metric in re.findall(r"(\w+)\((\w+)\{", text):
        counts = metric.endswith("_bucket") or served_metrics.families()[metric][0] in ("counter", "unknown")
        assert (function in ("rate", "irate")) == counts, (function, metric)
    assert set(WINDOW.findall(text)) <= {
        TWO_STEPS,
        "$__rate_interval",
        "$__range:$__interval",
        "${__range}${__interval_ms}ms:$__interval",
        "$__interval:$__interval",
    }
    assert not re.search(r"\b(avg|quantile_over_time)\(", text)
    for part in text.split("histogram_quantile(")[1:]:
        assert re.match(r"0\.\d+, sum by \(le(, [$\w]+)*\) \(\(?rate\(\w+_bucket\{", part), part
    assert "quantile=" not in text


@every("query", INFLUXDB)
def test_an_influxdb_query_uses_existing_measurements_and_bounds_the_time(query: Query) -> None:
    text = query.text
    measurements = MEASUREMENT.findall(text)
    assert measurements
    assert set(measurements) <= served_metrics.measurements(), set(measurements) - served_metrics.measurements()
    for label in NODE_LABELS:
        assert text.count(f'"{label}" =~ /^${label}$/') == len(measurements)
    # Every innermost query is restricted to the time range; see `dashboards.influxql`.
    assert text.count("$timeFilter") + text.count(UNTIL_END) >= len(measurements)
    # For slow metrics, the last step ends at the end of the time range.
    assert text.count(UNTIL_END) == text.count("$__interval, ${__to}ms)")
    # Percentiles are neither averaged nor added.
    for field in ("p50", "p95", "p99", "p999"):
        for function, _ in re.findall(rf'(\w+)\("({field})"\)', text):
            assert function == "max"
    if re.search(r'"p\d', text):
        outer = re.match(r'SELECT (\w+)\("', text)
        assert outer
        assert outer[1] == "max"


def test_math_expressions_refer_to_hidden_queries_in_the_same_panel() -> None:
    titles = []
    for _, dashboard in CASES:
        for panel in query_panels(dashboard):
            for target in panel["targets"]:
                if "expression" in target:
                    hidden = {query["refId"] for query in panel["targets"] if query.get("hide")}
                    assert set(re.findall(r"\$([A-Z])", target["expression"])) <= hidden
                    assert target["datasource"]["uid"] == "__expr__"
                    titles.append(panel["title"])
            assert any(not target.get("hide") for target in panel["targets"])
    assert "Heap utilisation" in titles


def test_only_client_signals_have_no_node_labels() -> None:
    assert {name for name in SIGNALS if name.startswith("load_") and name != "load_bytes"} == CLIENT_SIGNALS


def test_a_percentile_from_influxdb_is_described_as_a_maximum() -> None:
    percentiles = [
        panel
        for store, dashboard in CASES
        for panel in query_panels(dashboard)
        if store == "influxdb" and any('max("p' in target.get("query", "") for target in panel["targets"])
    ]
    assert len(percentiles) > 10
    for panel in percentiles:
        assert panel["title"].endswith("(max)")
        assert "never averaged" in panel["description"]


def test_influxdb_sums_slow_metrics_over_two_minutes() -> None:
    (panel,) = [
        panel
        for store, dashboard in CASES
        for panel in query_panels(dashboard)
        if store == "influxdb" and panel["title"] == "Cluster data size"
    ]
    assert panel["interval"] == "120s"


def test_heat_maps_query_buckets() -> None:
    panels = [panel for _, dashboard in CASES for panel in query_panels(dashboard)]
    for panel in panels:
        forms = {target.get("format") for target in panel["targets"]}
        assert ("heatmap" in forms) == (panel["type"] == "heatmap")
    texts = [target["expr"] for panel in panels if panel["type"] == "heatmap" for target in panel["targets"]]
    assert texts
    assert all(re.match(r"sum by \(le\) \(\(?rate\(", text) for text in texts)
    # The cells are counts.
    assert all(text.endswith(" * $__interval_ms / 1000") for text in texts)


def test_rates_have_a_window_of_two_steps_and_of_four_readings_of_slow_metrics() -> None:
    counts = {"tick": 0, "slow": 0}
    for dashboard in queries.dashboards("prometheus"):
        for target in (target for panel in query_panels(dashboard) for target in panel["targets"]):
            rates = re.findall(r"\b(i?rate)\((\w+?)(?:_bucket)?\{[^}]*\}\[([^\]]+)\]", target["expr"])
            intervals = {slowest_interval(CATALOGUE[name]) for _, name, _ in rates if name in CATALOGUE}
            functions = {(function, window) for function, _, window in rates}
            if intervals == {ScrapeInterval.TICK}:
                assert functions == {("rate", TWO_STEPS), ("irate", "$__rate_interval")}, target["expr"]
                assert not target.get("interval")
                counts["tick"] += 1
            elif intervals:
                assert functions == {("rate", TWO_STEPS)}, target["expr"]
                slowest_s = max(interval.value for interval in intervals)
                assert 2 * 60 * float(target["interval"].removesuffix("m")) >= 4 * slowest_s, target["expr"]
                counts["slow"] += 1
    assert min(counts.values()) > 0


def test_the_worst_series_are_selected_once_for_the_whole_time_range() -> None:
    top = [query for query in PROMETHEUS if "$topn" in query.text and query.form == "series"]
    assert len(top) > 20
    for query in top:
        shown, _, chosen = query.text.rpartition(" and ")
        assert re.match(r"(topk|bottomk)\(\$topn, (max|min)_over_time\(\(", chosen)
        assert chosen.endswith(":$__interval] @ end()))")
        assert shown[1:-1] in chosen


def test_the_worst_series_are_found_in_a_range_that_is_shorter_than_the_step() -> None:
    worst = [query for query in PROMETHEUS if "$topn" in query.text]
    for query in worst:
        # The multiples of the step at which a store evaluates the subquery are at most one step apart.
        spans_s = r"\[(?P<range>\d+)s((?P<more>\d+)ms)?:(?P<step>\d+)s\]( @ end\(\))?\)\)$"
        found = re.search(spans_s, queries.interpolated(query, Choice(from_s=60.0, to_s=120.0, interval_s=5)))
        assert found, query.text
        assert int(found["range"]) + int(found["more"] or 0) / 1000 >= int(found["step"]), query.text
    assert any(query.min_interval_s > 60 for query in worst)


def test_the_axis_of_a_panel_with_only_zeros_ends_near_zero() -> None:
    panels = [panel for _, dashboard in CASES for panel in query_panels(dashboard) if panel["type"] == "timeseries"]
    assert panels
    for panel in panels:
        assert panel["fieldConfig"]["defaults"]["custom"]["axisSoftMax"] <= 1024, panel["title"]


def test_threshold_lines_are_at_the_alert_thresholds() -> None:
    def steps(uid: str, title: str) -> list[tuple[float | None, str]]:
        (panel,) = [
            panel
            for _, dashboard in CASES
            if dashboard["uid"] == uid
            for panel in query_panels(dashboard)
            if panel["title"] == title
        ]
        return [(step["value"], step["color"]) for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]]

    # A step starts at its value, so "more than 30 compactions" becomes a step at 31.
    assert steps("casstat-storage", "Pending compactions")[:2] == [(None, GOOD), (31, WARNING)]
    assert steps("casstat-latency", "Read latency, p99")[:2] == [(None, GOOD), (0.1, WARNING)]
    assert steps("casstat-overview", "Unreachable nodes")[:2] == [(None, GOOD), (1, WARNING)]
    # Grafana draws a threshold line in the colour of the step above it, even if low values are bad.
    assert steps("casstat-overview", "Free disk space ratio")[1:] == [(0.1, CRITICAL), (0.2, WARNING)]


def test_text_panels_have_no_queries() -> None:
    notes = [panel for _, dashboard in CASES for panel in queries.panels(dashboard) if panel["type"] == "text"]
    assert notes
    assert all(note["options"]["content"] and not note.get("targets") for note in notes)


def test_the_provisioning_file_names_the_folders() -> None:
    quoted = Path('/a "b": # c')
    first, second = yaml.safe_load(dashboard_files.provider([quoted, Path("/d")]))["providers"]
    assert first["options"]["path"] == str(quoted)
    assert second["options"]["path"] == "/d"
    assert first["name"] != second["name"]
    assert first["allowUiUpdates"] is False


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (Choice(), '{a=~".+"}'),
        (Choice(node=("10.0.0.1",)), '{a=~"10\\\\.0\\\\.0\\\\.1"}'),
        (Choice(node=("a", "b+")), '{a=~"(a|b\\\\+)"}'),
    ],
)
def test_variables_are_interpolated_as_in_grafana(choice: Choice, expected: str) -> None:
    assert queries.interpolated(Query("", "", '{a=~"$node"}'), choice) == expected
    influx = queries.interpolated(Query("", "", "SELECT /^$node$/"), choice)
    assert influx == "SELECT /^" + expected[5:-2].replace("\\\\", "\\") + "$/"


def test_a_state_timeline_without_series_states_the_reason() -> None:
    panels = [panel for _, dashboard in CASES for panel in query_panels(dashboard) if panel["type"] == "state-timeline"]
    assert panels
    for panel in panels:
        assert all(" or on () label_replace(vector(-1)," in target["expr"] for target in panel["targets"])
        (mapping,) = panel["fieldConfig"]["defaults"]["mappings"]
        assert mapping["options"]["-1"]["text"] == panel["fieldConfig"]["defaults"]["noValue"]


def test_the_number_of_nodes_has_the_colour_of_the_unreachable_ones() -> None:
    (overview,) = [dashboard for store, dashboard in CASES if dashboard["uid"] == "casstat-overview"]
    (panel,) = [panel for panel in query_panels(overview) if panel["title"] == "Nodes up"]
    colours = {
        override["matcher"]["options"]: override["properties"][0]["value"]["fixedColor"]
        for override in panel["fieldConfig"]["overrides"]
    }
    assert list(colours.values()) == [GOOD, WARNING, CRITICAL]
    assert [target["refId"] for target in panel["targets"]] == list(colours)
    assert panel["options"]["colorMode"] == "value"
    healthy, _, critical = (target["expr"] for target in panel["targets"])
    assert re.search(r"unless on \(cluster\) \(last_over_time\(.*cassandra_endpoints_unreachable.* > 0\)$", healthy)
    assert critical.endswith(" > 1)")


def test_annotations_for_earlier_events_are_not_drawn_at_the_left_edge() -> None:
    for dashboard in queries.dashboards("prometheus"):
        for annotation in dashboard["annotations"]["list"]:
            assert annotation["expr"].endswith(" * 1000 >= $__from") == annotation["useValueForTime"]

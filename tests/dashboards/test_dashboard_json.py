"""What holds for every panel of every dashboard, as it is committed."""

import json
import re
from pathlib import Path

import pytest
import yaml

from collector.catalogue import CATALOGUE
from collector.model.metric import ScrapeInterval
from collector.sampling.selection import slowest_interval
from dashboards.grafana import dashboard_files
from dashboards.grafana.definitions.all_dashboards import DASHBOARDS
from dashboards.grafana.panel_colours import CRITICAL, GOOD, WARNING
from dashboards.grafana.panel_model import Line, TextPanel
from dashboards.grafana.prometheus_queries import CLIENT_SIGNALS
from dashboards.promql import NODE_LABELS
from dashboards.signals.all_signals import SIGNALS
from tests.dashboards import queries, served_metrics
from tests.dashboards.queries import Choice, Json, Query

BUILT_IN = {"timeseries", "stat", "table", "heatmap", "state-timeline", "text"}
CASES = [(store, dashboard) for store in dashboard_files.STORES for dashboard in queries.dashboards(store)]
EVERY = pytest.mark.parametrize(("store", "dashboard"), CASES, ids=[dashboard["uid"] for _, dashboard in CASES])
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
MEASUREMENT = re.compile(r'FROM "([^"]+)"')


def asking(dashboard: Json) -> list[Json]:
    return [panel for panel in queries.panels(dashboard) if panel["type"] != "text"]


def test_every_board_is_there_for_both() -> None:
    names = {
        store: {name.removesuffix(".json") for name, _ in dashboard_files.packaged_dashboards(store)}
        for store in dashboard_files.STORES
    }
    assert names["prometheus"] == {dashboard.name for dashboard in DASHBOARDS}
    # Its own figures come by Prometheus alone.
    assert names["influxdb"] == names["prometheus"] - {"agent"}


@EVERY
def test_a_board_is_complete(store: str, dashboard: Json) -> None:
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
def test_titles_are_noun_phrases_in_the_terms_of_the_field(store: str, dashboard: Json) -> None:
    titles = [panel["title"] for panel in dashboard["panels"]]
    assert [title for title in titles if re.search(r"\b(that|which|who|nobody|what|in use)\b", title, re.I)] == []


def test_uids_are_stable_and_no_two_are_the_same() -> None:
    found = [dashboard["uid"] for _, dashboard in CASES]
    assert len(set(found)) == len(found)
    assert {"casstat-overview", "casstat-node", "casstat-overview-influxdb"} <= set(found)
    assert all(len(uid) <= 40 for uid in found)


@EVERY
def test_a_panel_says_what_it_shows(store: str, dashboard: Json) -> None:
    for panel in queries.panels(dashboard):
        assert panel["type"] in BUILT_IN, panel["title"]
        assert panel["title"]
        assert panel["description"]
    for panel in asking(dashboard):
        assert panel["targets"], panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        # What stands there when there is nothing to see.
        reason = panel["fieldConfig"]["defaults"]["noValue"]
        assert "Absent" in reason
        assert all(part in panel["description"] for part in re.findall(r"Absent[^.]*\.", reason))
        assert panel["datasource"] == {"type": store, "uid": "${datasource}"}


@EVERY
def test_every_panel_tells_what_its_signals_mean_and_why_they_are_absent(store: str, dashboard: Json) -> None:
    (declared,) = [each for each in DASHBOARDS if dashboard["uid"].removesuffix("-influxdb") == f"casstat-{each.name}"]
    by_name: dict[str, list[tuple[Line, ...]]] = {}
    for row in declared.rows:
        for panel in row.panels:
            by_name.setdefault(panel.name, []).append(panel.lines)
    for shown in asking(dashboard):
        name = shown["title"].removesuffix(" (max)")
        lines = by_name[name].pop(0)
        served = [line for line in lines if store == "prometheus" or not _prometheus_alone(line)]
        assert served
        for line in served:
            assert line.signal.help in shown["description"]
            assert line.signal.absent in shown["description"]


def _prometheus_alone(line: Line) -> bool:
    return bool(
        re.search(r"casstat_(load|tick|source|sink|journal|series|events)|\bprocess_", str(line.signal.expression))
    )


@EVERY
def test_panels_are_told_apart_and_none_covers_another(store: str, dashboard: Json) -> None:
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(numbers)) == len(numbers)
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert taken.isdisjoint(cells), panel["title"]
        taken |= cells


def test_the_overview_is_one() -> None:
    for store, dashboard in CASES:
        if "overview" in dashboard["uid"]:
            assert len(asking(dashboard)) <= 30, store


@EVERY
def test_variables_go_from_the_whole_to_its_parts(store: str, dashboard: Json) -> None:
    variables = dashboard["templating"]["list"]
    names = [each["name"] for each in variables]
    assert names[0] == "datasource"
    assert variables[0]["query"] == store
    chosen = [name for name in names[1:] if name not in ("by", "topn")]
    texts = json.dumps(dashboard["panels"])
    assert ("by" in names) == ("$by" in texts or "${by:raw}" in texts)
    assert ("topn" in names) == ("$topn" in texts)
    of_node = ["job", *NODE_LABELS] if store == "prometheus" else list(NODE_LABELS)
    assert chosen in (of_node, [*of_node, "keyspace", "table"])
    for place, variable in enumerate(variables[1 : len(chosen) + 1]):
        # Refreshed when the time range changes; several values may be chosen, and all of them.
        assert (variable["refresh"], variable["multi"], variable["includeAll"]) == (2, True, True)
        # All must not match series without the label. Of jobs it is the list of those that serve casstat's metrics.
        assert variable.get("allValue") == (None if variable["name"] == "job" else ".+")
        text = variable["query"]["query"] if store == "prometheus" else variable["query"]
        assert text.startswith("label_values(" if store == "prometheus" else "SHOW TAG VALUES")
        narrowed = min(place, len(of_node)) if variable["name"] != "table" or store == "prometheus" else place
        assert all(f"${before}" in text for before in chosen[:narrowed])


@EVERY
def test_no_variable_is_asked_for_that_there_is_not(store: str, dashboard: Json) -> None:
    there = {each["name"] for each in dashboard["templating"]["list"]}
    there |= {"__rate_interval", "__interval", "__range", "timeFilter"}
    for query in queries.every(dashboard):
        assert queries.variables(query) <= there, query
        assert "$" not in re.sub(r"\$/", "/", queries.filled(query, Choice(from_s=1, to_s=61))), query


@EVERY
def test_links_lead_to_boards_that_there_are(store: str, dashboard: Json) -> None:
    uids = {other["uid"] for kind, other in CASES if kind == store}
    assert {link["url"].removeprefix("/d/") for link in dashboard["links"]} == uids
    assert all(link["keepTime"] and link["includeVars"] for link in dashboard["links"])
    for uid in re.findall(r'"/d/([^?"]+)\?', json.dumps(dashboard["panels"])):
        assert uid in uids


@EVERY
def test_what_happened_is_marked(store: str, dashboard: Json) -> None:
    names = [each["name"] for each in dashboard["annotations"]["list"]]
    expected = {
        "prometheus": ["Restarts", "Nodes unreachable", "Schema changes", "Runs begin", "Runs end", "Phases"],
        "influxdb": ["Runs, restarts, nodes", "Repairs, streams, drops", "Collections, flushes"],
    }
    assert names == expected[store]


@pytest.mark.parametrize("query", PROMETHEUS, ids=lambda query: f"{query.dashboard} {query.panel}"[:60])
def test_a_question_to_prometheus(query: Query) -> None:
    text = query.text
    names = NAME.findall(text)
    assert names
    # A metric that is renamed fails here, and not on somebody's screen.
    assert set(names) <= served_metrics.series(), set(names) - served_metrics.series()
    for name, matchers in SELECTOR.findall(text):
        wanted = ("cluster",) if name.startswith("casstat_load_") else ("job", *NODE_LABELS)
        assert all(f'{label}=~"${label}"' in matchers for label in wanted), name
        told = re.findall(r"(\w+)=", matchers)
        assert len(told) == len(set(told))
    for function, metric in re.findall(r"(\w+)\((\w+)\{", text):
        counts = metric.endswith("_bucket") or served_metrics.families()[metric][0] in ("counter", "unknown")
        assert (function in ("rate", "increase")) == counts, (function, metric)
    assert set(WINDOW.findall(text)) <= {"$__rate_interval", "2m", "4m", "$__range:$__rate_interval"}
    assert all(f"{each}(" not in text for each in ("irate", "avg", "quantile_over_time"))
    for part in text.split("histogram_quantile(")[1:]:
        assert re.match(r"0\.\d+, sum by \(le(, [$\w]+)*\) \(rate\(\w+_bucket\{", part), part
    assert "quantile=" not in text


@pytest.mark.parametrize("query", INFLUXDB, ids=lambda query: f"{query.dashboard} {query.panel}"[:60])
def test_a_question_to_influxdb(query: Query) -> None:
    text = query.text
    found = MEASUREMENT.findall(text)
    assert found
    assert set(found) <= served_metrics.measurements(), set(found) - served_metrics.measurements()
    for label in NODE_LABELS:
        assert text.count(f'"{label}" =~ /^${label}$/') == len(found)
    # Bounded where points are read, and never after their steps: see `dashboards.influxql`.
    assert text.count("$timeFilter") >= len(found)
    # Percentiles are neither averaged nor added.
    for field in ("p50", "p95", "p99", "p999"):
        for function, _ in re.findall(rf'(\w+)\("({field})"\)', text):
            assert function == "max"
    if re.search(r'"p\d', text):
        outer = re.match(r'SELECT (\w+)\("', text)
        assert outer
        assert outer[1] == "max"


def test_what_grafana_calculates_is_of_what_is_asked_in_the_same_panel() -> None:
    found = []
    for _, dashboard in CASES:
        for panel in asking(dashboard):
            for target in panel["targets"]:
                if "expression" in target:
                    hidden = {each["refId"] for each in panel["targets"] if each.get("hide")}
                    assert set(re.findall(r"\$([A-Z])", target["expression"])) <= hidden
                    assert target["datasource"]["uid"] == "__expr__"
                    found.append(panel["title"])
            assert any(not target.get("hide") for target in panel["targets"])
    assert "Heap utilisation" in found


def test_only_what_clients_tell_belongs_to_no_node() -> None:
    assert {name for name in SIGNALS if name.startswith("load_") and name != "load_bytes"} == CLIENT_SIGNALS


def test_a_percentile_from_influxdb_says_what_it_is() -> None:
    for store, dashboard in CASES:
        for panel in asking(dashboard):
            texts = [target.get("query", "") for target in panel["targets"]]
            if store == "influxdb" and any('max("p' in text for text in texts):
                assert panel["title"].endswith("(max)")
                assert "nothing is averaged" in panel["description"]


def test_what_is_read_once_a_minute_is_summed_over_two() -> None:
    (panel,) = [
        panel
        for store, dashboard in CASES
        for panel in asking(dashboard)
        if store == "influxdb" and panel["title"] == "Cluster data size"
    ]
    assert panel["interval"] == "120s"


def test_heat_maps_are_made_of_buckets() -> None:
    for _, dashboard in CASES:
        for panel in asking(dashboard):
            forms = {target.get("format") for target in panel["targets"]}
            assert ("heatmap" in forms) == (panel["type"] == "heatmap")
            for target in panel["targets"]:
                if panel["type"] == "heatmap":
                    assert target["expr"].startswith("sum by (le) (increase(")


def test_rates_of_what_is_read_rarely_have_a_window_of_several_readings() -> None:
    for dashboard in queries.dashboards("prometheus"):
        for target in (target for panel in asking(dashboard) for target in panel["targets"]):
            rates = re.findall(r"(?:rate|increase)\((\w+?)(?:_bucket)?\{[^}]*\}\[([^\]]+)\]", target["expr"])
            tiers = [(slowest_interval(CATALOGUE[name]), window) for name, window in rates if name in CATALOGUE]
            for scrape_interval, window in tiers:
                if scrape_interval is ScrapeInterval.TICK and len({each for each, _ in tiers}) == 1:
                    assert window == "$__rate_interval", target["expr"]
                elif scrape_interval is not ScrapeInterval.TICK:
                    assert 60 * float(window.removesuffix("m")) >= 4 * scrape_interval.value, target["expr"]


def test_the_worst_series_are_chosen_once_for_the_whole_time_range() -> None:
    top = [query for query in PROMETHEUS if "$topn" in query.text and query.form == "series"]
    assert len(top) > 20
    for query in top:
        shown, _, chosen = query.text.rpartition(" and ")
        assert re.match(r"(topk|bottomk)\(\$topn, (max|min)_over_time\(\(", chosen)
        assert chosen.endswith("[$__range:$__rate_interval] @ end()))")
        assert shown[1:-1] in chosen


def test_axes_of_zeros_end_near_zero() -> None:
    for _, dashboard in CASES:
        for panel in asking(dashboard):
            if panel["type"] == "timeseries":
                assert panel["fieldConfig"]["defaults"]["custom"]["axisSoftMax"] <= 1024, panel["title"]


def test_lines_are_drawn_where_alerts_begin() -> None:
    def steps(uid: str, title: str) -> list[tuple[float | None, str]]:
        (panel,) = [
            panel
            for _, dashboard in CASES
            if dashboard["uid"] == uid
            for panel in asking(dashboard)
            if panel["title"] == title
        ]
        return [(step["value"], step["color"]) for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]]

    # An alert is about more than the threshold: more than 30 compactions are 31.
    assert steps("casstat-storage", "Pending compactions")[:2] == [(None, GOOD), (31, WARNING)]
    assert steps("casstat-latency", "Read latency, p99")[:2] == [(None, GOOD), (0.1, WARNING)]
    assert steps("casstat-overview", "Unreachable nodes")[:2] == [(None, GOOD), (1, WARNING)]
    # Grafana draws a line in the colour of the step that begins there, whichever side is the bad one.
    assert steps("casstat-overview", "Free disk space ratio")[1:] == [(0.1, CRITICAL), (0.2, WARNING)]


def test_notes_ask_nothing() -> None:
    notes = [
        panel
        for dashboard in DASHBOARDS
        for row in dashboard.rows
        for panel in row.panels
        if isinstance(panel, TextPanel)
    ]
    assert all(not note.lines for note in notes)


def test_the_provider_names_the_folders() -> None:
    odd = Path('/a "b": # c')
    first, second = yaml.safe_load(dashboard_files.provider([odd, Path("/d")]))["providers"]
    assert first["options"]["path"] == str(odd)
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
def test_variables_are_filled_in_as_grafana_does(choice: Choice, expected: str) -> None:
    assert queries.filled(Query("", "", '{a=~"$node"}'), choice) == expected
    influx = queries.filled(Query("", "", "SELECT /^$node$/"), choice)
    assert influx == "SELECT /^" + expected[5:-2].replace("\\\\", "\\") + "$/"

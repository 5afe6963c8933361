"""Renders panel queries in InfluxQL, for InfluxDB 1.8 and 2.

The points in InfluxDB have no histogram buckets, so a panel for a percentile shows the highest of the nodes'
percentiles per interval, and its description says so. Panels that need buckets, the agents' self-metrics or load
clients' metrics are omitted, because only Prometheus receives these.
"""

from collections.abc import Sequence
from dataclasses import replace

from collector.node.catalogue import CATALOGUE
from collector.node.selection import slowest_interval
from dashboards.expression import Difference, Expression, Ratio, metrics_of
from dashboards.grafana import panel_model
from dashboards.grafana.panel_model import (
    BLUE,
    PURPLE,
    VERMILLION,
    Annotation,
    Dashboard,
    Heatmap,
    JsonFields,
    Line,
    Panel,
    Query,
    Row,
    Split,
    Spread,
    StateTimeline,
    TextPanel,
    Variable,
    WorstTable,
    ref_id,
)
from dashboards.influxql import Scope, clamp, clamped, nonzero, render
from dashboards.promql import NODE_LABELS
from dashboards.signals import agent, load

PROMETHEUS_ONLY = {signal.name for signal in (*agent.SIGNALS, *load.SIGNALS)}
MAX_OF_PERCENTILES = (
    "Because InfluxDB has no histogram buckets, the panel shows the highest of the nodes' percentiles per interval, "
    "which is never below the percentile of all nodes combined. Percentiles are never averaged."
)
LIMITS = (
    "Percentiles across nodes, heat maps, a load test's client metrics and casstat's self-metrics are available "
    "through Prometheus only. Percentiles on this dashboard are those of single nodes and intervals. Where several "
    "percentiles fall into one step, the panel shows the highest, which is never below the true percentile. "
    "Percentiles are never averaged."
)
CLUSTER_EVENTS = "run|restart|start|stop|node_up|node_down|node_joined|node_left|error"
_LABELS = {Split.VARIABLE: ("${by:raw}",), Split.NODE: NODE_LABELS, Split.CLUSTER: ("cluster",)}
_LEGENDS = {Split.VARIABLE: "$tag_${by:text}", Split.NODE: "$tag_node", Split.CLUSTER: "$tag_cluster"}


class InfluxDB:
    """Renders panel queries in InfluxQL."""

    name, title = "influxdb", "InfluxDB"
    by: Sequence[tuple[str, str]] = tuple(
        (label, ", ".join(f'"{name}"' for name in NODE_LABELS[: depth + 1])) for depth, label in enumerate(NODE_LABELS)
    )

    def dashboards(self, definitions: Sequence[Dashboard]) -> list[Dashboard]:
        """Return the dashboards without the panels that InfluxDB cannot fill.

        A dashboard that has lost panels or shows percentiles gets a note that describes InfluxDB's limits.
        """
        supported = []
        for dashboard in definitions:
            rows = tuple(Row(row.title, panels) for row in dashboard.rows if (panels := _supported_panels(row)))
            if rows:
                note = TextPanel(title="Limits of InfluxDB", text=LIMITS, width=24, height=3)
                is_exact = not any(panel_model.has_quantile(panel) for row in rows for panel in row.panels)
                is_complete = rows == dashboard.rows and is_exact
                about = () if is_complete else (Row("About this dashboard", (note,)),)
                supported.append(replace(dashboard, rows=(*rows, *about)))
        return supported

    def queries(self, panel: Panel, tables: bool) -> list[Query]:
        if isinstance(panel, WorstTable):
            return [_worst_query(panel, line, tables) for line in panel.lines]
        queries: list[Query] = []
        for line in panel.lines:
            _append_query(
                queries,
                line.signal.expression,
                _scope(panel, line, tables),
                _legend(panel, line),
                bounded=line.signal.bounded,
            )
        return queries

    def panel_title(self, panel: Panel) -> str:
        """Return the panel's title; "(max)" marks a panel that shows the maximum of several percentiles."""
        return f"{panel.name} (max)" if panel_model.has_quantile(panel) else panel.name

    def panel_description(self, panel: Panel) -> str:
        text = panel_model.description(panel)
        if isinstance(panel, WorstTable):
            text = f"The worst value of each series in the time range, sorted from worst to best.\n\n{text}"
        return f"{text}\n\n{MAX_OF_PERCENTILES}" if panel_model.has_quantile(panel) else text

    def variables(self, dashboard: Dashboard) -> list[Variable]:
        titles = [("cluster", "Cluster"), ("dc", "Data centre"), ("rack", "Rack"), ("node", "Node")]
        titles += [("keyspace", "Keyspace"), ("table", "Table")] if dashboard.tables else []
        names = [name for name, _ in titles]
        return [Variable(name, title, _tag_values(name, names[:depth])) for depth, (name, title) in enumerate(titles)]

    def annotations(self) -> list[Annotation]:
        """Return the annotations: the events that agents record and those from the nodes' logs."""
        tags = ("kind", "node")
        repairs, collections = _event_query("dropped|repair|stream|hints"), _event_query("gc|compaction|flush")
        return [
            Annotation("Runs, restarts, nodes", _event_query(CLUSTER_EVENTS), VERMILLION, "text", tags),
            Annotation("Repairs, streams, drops", repairs, PURPLE, "text", tags),
            Annotation("Collections, flushes", collections, BLUE, "text", tags, enabled=False),
        ]

    def min_interval(self, panel: Panel) -> str:
        """Return twice the longest scrape interval of the panel's metrics, but at least one second.

        Agents read slow metrics at different times within a minute, so a shorter step would omit nodes from a sum.
        """
        return f"{max(1, round(2 * _slowest_interval_s(panel)))}s"

    def target(self, query: Query, ref: str) -> JsonFields:
        """Return the JSON form of a query; the SDK has no class for InfluxDB."""
        if query.form == "math":
            grafana = {"type": "__expr__", "uid": "__expr__"}
            return JsonFields({"refId": ref, "datasource": grafana, "type": "math", "expression": query.text})
        return JsonFields(
            {
                "refId": ref,
                "hide": not query.visible,
                "query": query.text,
                "rawQuery": True,
                "resultFormat": "table" if query.form == "table" else "time_series",
                "alias": query.legend,
            }
        )

    def annotation(self, annotation: Annotation) -> dict[str, object]:
        """Return the fields of an annotation that are specific to InfluxDB."""
        return {
            "query": annotation.query,
            "fromAnnotations": True,
            "textColumn": annotation.text,
            "tagsColumn": ",".join(annotation.tags),
        }


def _supported_panels(row: Row) -> tuple[Panel, ...]:
    """Return a row's panels, reduced to the lines that InfluxDB can fill; () if only text would remain.

    If a row has lost a panel and the remaining ones differ in size, all get the default size, to fill the space.
    """
    supported: list[Panel] = []
    for panel in row.panels:
        lines = tuple(line for line in panel.lines if line.signal_name not in PROMETHEUS_ONLY)
        if isinstance(panel, TextPanel):
            supported.append(panel)
        elif lines and not isinstance(panel, Heatmap | Spread | StateTimeline):
            supported.append(replace(panel, lines=lines))
    if len(supported) < len(row.panels) and len({(panel.width, panel.height) for panel in supported}) > 1:
        supported = [replace(panel, width=Panel.width, height=Panel.height) for panel in supported]
    return () if all(isinstance(panel, TextPanel) for panel in supported) else tuple(supported)


def _slowest_interval_s(panel: Panel) -> float:
    metrics = {metric for line in panel.lines for metric in metrics_of(line.signal.expression)}
    return max((slowest_interval(CATALOGUE[metric]).value for metric in metrics), default=0.0)


def _scope(panel: Panel, line: Line, tables: bool) -> Scope:
    """Return the scope of a line's query.

    For slow metrics, the steps are aligned with the end of the time range: a partial last step would omit nodes from a
    sum.
    """
    scope = Scope(_match(line, tables), _labels(panel, line))
    if not _slowest_interval_s(panel):
        return scope
    return replace(scope, time="time >= ${__from}ms AND time < ${__to}ms", step="$__interval, ${__to}ms")


def _match(line: Line, tables: bool) -> str:
    selectable = [label for label in ("keyspace", "table") if tables and label in line.signal.labels]
    return " AND ".join(_conditions((*NODE_LABELS, *selectable)))


def _conditions(names: Sequence[str]) -> list[str]:
    return [f'"{name}" =~ /^${name}$/' for name in names]


def _labels(panel: Panel, line: Line) -> tuple[str, ...]:
    return (*_LABELS[panel.split], *(label for label in panel.labels if label in line.signal.labels))


def _append_query(
    queries: list[Query],
    expression: Expression,
    scope: Scope,
    legend: str,
    *,
    bounded: bool = False,
    visible: bool = True,
) -> str:
    """Append the query for an expression, and return its letter (see `ref_id`).

    An expression over several metrics becomes one query per operand, and Grafana combines the results, because InfluxQL
    has no arithmetic across measurements. With `bounded`, values are limited to the range 0 to 1.
    """
    if isinstance(expression, Ratio | Difference) and len(set(metrics_of(expression))) > 1:
        operator = "/" if isinstance(expression, Ratio) else "-"
        operands = (expression.left, expression.right)
        left, right = [_append_query(queries, operand, scope, legend, visible=False) for operand in operands]
        if isinstance(expression, Ratio):
            # Drop zero denominators: 0 / 0 would be NaN.
            queries[-1] = replace(queries[-1], text=nonzero(queries[-1].text, scope.by))
        text = f"${left} {operator} ${right}"
        queries.append(Query(clamp(f"({text})") if bounded else text, legend, "math", visible))
    else:
        text = render(expression, scope)
        queries.append(Query(clamped(text, scope.by) if bounded else text, legend, visible=visible))
    return ref_id(len(queries) - 1)


def _worst_query(panel: Panel, line: Line, tables: bool) -> Query:
    by = _labels(panel, line)
    tags = ", ".join(f'"{tag}"' for tag in by)
    inner = render(line.signal.expression, _scope(panel, line, tables))
    inner = clamped(inner, by) if line.signal.bounded else inner
    # Only the inner query has a time condition. In the outer query, it would drop the first step whenever the time
    # range begins in the middle of a step.
    worst = "min" if line.signal.low_is_worse else "max"
    text = f'SELECT {worst}("value") AS "Value" FROM ({inner}) GROUP BY {tags}'  # noqa: S608
    return Query(text, form="table")


def _legend(panel: Panel, line: Line) -> str:
    labels = " ".join(f"$tag_{label}" for label in panel.labels if label in line.signal.labels)
    group = "" if panel.split is Split.CLUSTER and (labels or line.name) else _LEGENDS[panel.split]
    return " ".join(part for part in (line.name, labels, group) if part)


def _tag_values(name: str, before: Sequence[str]) -> str:
    where = f" WHERE {' AND '.join(_conditions(before))}" if before else ""
    return f'SHOW TAG VALUES WITH KEY = "{name}"{where}'


def _event_query(kinds: str) -> str:
    conditions = " AND ".join(_conditions(NODE_LABELS))
    columns = 'SELECT "text", "kind", "node" FROM "casstat_events"'
    return f'{columns} WHERE $timeFilter AND {conditions} AND "kind" =~ /^({kinds})$/'

"""Renders panel queries in PromQL, for Prometheus and VictoriaMetrics."""

from collections.abc import Sequence
from dataclasses import replace

from collector.model.metric import ScrapeInterval
from collector.node.catalogue import CATALOGUE
from collector.node.selection import slowest_interval
from dashboards.expression import Quantile, Rate, parts_of
from dashboards.grafana import panel_model
from dashboards.grafana.panel_model import (
    BLUE,
    GREEN,
    NO_STATE,
    ORANGE,
    PURPLE,
    VERMILLION,
    Annotation,
    Dashboard,
    Heatmap,
    Line,
    Panel,
    Query,
    Split,
    Spread,
    Stat,
    StateTimeline,
    TimeSeries,
    Variable,
    WorstTable,
)
from dashboards.promql import NODE_LABELS, Scope, rate, render, selector
from dashboards.signals import load
from dashboards.thresholds import THRESHOLDS

CLUSTER = 'cluster=~"$cluster"'
# Selects casstat's jobs. Other exporters also serve node_* and process_* metrics, sometimes with the same labels.
JOB = 'job=~"$job"'
NODE = ",".join((JOB, *(f'{label}=~"${label}"' for label in NODE_LABELS)))
# The range of rates is two steps, such as 1s1000ms, which contain two samples: a step is never shorter than the data
# source's scrape interval. At a step of one second, each value is thus the rate of its own second, as in the line.
WINDOW = "${__interval}${__interval_ms}ms"
# Four scrape intervals, or more: where scrapes fail or are farther apart than the data source's setting.
SPARSE = "$__rate_interval"
# The minimum step for rates of metrics that are not read on every tick. Two steps span at least four readings, and at
# least two scrapes even if they are a minute apart.
MIN_STEPS = {ScrapeInterval.OFTEN: "1m", ScrapeInterval.SLOW: "2m"}
IN_RANGE = " >= $__from"
CLIENT_SIGNALS = {signal.name for signal in load.SIGNALS}
# Every agent serves this metric, even while its node is down.
BUILD_INFO = "casstat_build_info"
_LABELS = {Split.VARIABLE: ("$by",), Split.NODE: NODE_LABELS, Split.CLUSTER: ("cluster",)}
_LEGENDS = {Split.VARIABLE: "{{${by:text}}}", Split.NODE: "{{node}}", Split.CLUSTER: "{{cluster}}"}
_TITLES = (("cluster", "Cluster"), ("dc", "Data centre"), ("rack", "Rack"), ("node", "Node"))


class Prometheus:
    """Renders panel queries in PromQL.

    by  the displayed text of each choice for $by, and its value in queries.
    """

    name, title = "prometheus", "Prometheus"
    by: Sequence[tuple[str, str]] = tuple(
        (label, ", ".join(NODE_LABELS[: depth + 1])) for depth, label in enumerate(NODE_LABELS)
    )

    def dashboards(self, definitions: Sequence[Dashboard]) -> list[Dashboard]:
        """Return all dashboards: Prometheus can fill every panel."""
        return list(definitions)

    def queries(self, panel: Panel, tables: bool) -> list[Query]:
        """Return the queries of a panel; `tables` is true if its dashboard has variables for keyspaces and tables."""
        if isinstance(panel, Spread):
            return _spread_queries(panel, tables)
        if isinstance(panel, Heatmap):
            return [_heatmap_query(panel, tables)]
        if isinstance(panel, Stat) and panel.severity:
            return _severity_queries(panel, tables)
        return [_line_query(panel, line, tables) for line in panel.lines]

    def panel_title(self, panel: Panel) -> str:
        return panel.name

    def panel_description(self, panel: Panel) -> str:
        """Return the displayed description, with a note if Prometheus limits the series."""
        text = panel_model.description(panel)
        worst = f"the $topn series with the {'lowest' if panel.lines[0].signal.low_is_worse else 'highest'} values"
        if isinstance(panel, WorstTable):
            return f"The worst value of each series in the time range, limited to {worst}.\n\n{text}"
        if isinstance(panel, TimeSeries) and panel.top:
            return f"{text}\n\nShows only {worst} in the time range."
        return text

    def variables(self, dashboard: Dashboard) -> list[Variable]:
        """Return the variables in order; each one restricts the values of those after it."""
        # No fixed regular expression matches only the jobs that serve casstat's metrics, so "All" is a list of them.
        variables = [Variable("job", "Job", f"label_values({BUILD_INFO}, job)", all_value="")]
        for depth, (label, title) in enumerate(_TITLES):
            before = ",".join((JOB, *(f'{parent}=~"${parent}"' for parent, _ in _TITLES[:depth])))
            variables.append(Variable(label, title, f"label_values({selector(BUILD_INFO, (), before)}, {label})"))
        if dashboard.tables:
            keyspaces = selector("cassandra_keyspace_operations_total", (), NODE)
            tables = selector("cassandra_table_operations_total", (), f'{NODE},keyspace=~"$keyspace"')
            variables.append(Variable("keyspace", "Keyspace", f"label_values({keyspaces}, keyspace)"))
            variables.append(Variable("table", "Table", f"label_values({tables}, table)"))
        return variables

    def annotations(self) -> list[Annotation]:
        """Return the annotations; a run that several agents report is displayed only once.

        Grafana draws an event before the time range at its left edge, so queries for events exclude them.
        """
        schema = selector("cassandra_schema_version", (), NODE)
        before = f"{schema} offset $__interval"
        run = "max by (cluster, run{more}) (casstat_run_{event}_time_seconds{{" + NODE + "}}) * 1000" + IN_RANGE
        tags = ("cluster", "run")
        return [
            Annotation(
                "Restarts",
                f"{selector('cassandra_jvm_start_time_seconds', (), NODE)} * 1000{IN_RANGE}",
                VERMILLION,
                "Cassandra started",
                at_value=True,
            ),
            Annotation(
                "Nodes unreachable",
                f"max by (cluster) ({selector('cassandra_endpoints_unreachable', (), NODE)}) > 0",
                ORANGE,
                "node unreachable",
                ("cluster",),
            ),
            Annotation(
                "Schema changes",
                # Consider only nodes that were present one step earlier: a node's return is not a schema change.
                f"max by (cluster, schema_version) (({schema} unless {before}) and on (cluster, node) {before})",
                PURPLE,
                "schema {{schema_version}}",
                ("cluster",),
            ),
            Annotation("Runs begin", run.format(more="", event="begin"), GREEN, "{{run}} begins", tags, at_value=True),
            Annotation("Runs end", run.format(more="", event="end"), GREEN, "{{run}} ends", tags, at_value=True),
            Annotation("Phases", run.format(more=", mark", event="mark"), BLUE, "{{mark}}", tags, at_value=True),
        ]

    def min_interval(self, panel: Panel) -> str:
        """Return "" to select the data source's scrape interval; queries that need a longer minimum set their own."""
        return ""

    def target(self, query: Query, ref: str) -> object:
        """Return the SDK's builder for a query."""
        from grafana_foundation_sdk.builders import prometheus as sdk
        from grafana_foundation_sdk.models.prometheus import PromQueryFormat

        builder = sdk.Dataquery().expr(query.text).ref_id(ref)
        if query.min_interval:
            builder = builder.interval(query.min_interval)
        if query.form == "table":
            return builder.instant().format(PromQueryFormat.TABLE)
        builder = builder.range().legend_format(query.legend)
        return builder.format(PromQueryFormat.HEATMAP if query.form == "buckets" else PromQueryFormat.TIME_SERIES)

    def annotation(self, annotation: Annotation) -> dict[str, object]:
        """Return the fields of an annotation that are specific to Prometheus."""
        return {
            "expr": annotation.query,
            "step": "10s",
            "titleFormat": annotation.text,
            "tagKeys": ",".join(annotation.tags),
            "useValueForTime": annotation.at_value,
        }


def _match(line: Line, tables: bool) -> str:
    """Return the label matchers for a signal.

    Load clients' series have no node labels, so only their cluster is matched.
    """
    if line.signal_name in CLIENT_SIGNALS:
        return CLUSTER
    selectable = [label for label in ("keyspace", "table") if tables and label in line.signal.labels]
    return ",".join((NODE, *(f'{label}=~"${label}"' for label in selectable)))


def _labels(panel: Panel, line: Line) -> tuple[str, ...]:
    labels = ("cluster",) if line.signal_name in CLIENT_SIGNALS else _LABELS[panel.split]
    return (*labels, *(label for label in panel.labels if label in line.signal.labels))


def _line_query(panel: Panel, line: Line, tables: bool) -> Query:
    step = _min_step(line)
    text = _promql(line, _scope(line, tables, _labels(panel, line)))
    if isinstance(panel, WorstTable):
        return Query(_worst(line, text, step), form="table", min_interval=step)
    if isinstance(panel, TimeSeries) and panel.top:
        # Select the series once for the whole time range: a selection per step would turn lines into dots.
        text = f"({text}) and {_worst(line, text, step, ' @ end()')}"
    if isinstance(panel, StateTimeline):
        text = f'{text} or on () label_replace(vector({NO_STATE}), "node", "-", "", "")'
    return Query(text, _legend(panel, line), min_interval=step)


def _promql(line: Line, scope: Scope) -> str:
    text = render(line.signal.expression, scope)
    if line.signal.bounded:
        text = f"clamp({text}, 0, 1)"
    # In PromQL, 0 / 0 is NaN, which the comparison removes.
    return f"({text}) >= 0" if panel_model.may_be_undefined(line.signal.expression) else text


def _worst(line: Line, text: str, min_step: str, at: str = "") -> str:
    """Return the query for the $topn series with the worst values in the time range."""
    select, worst = ("bottomk", "min") if line.signal.low_is_worse else ("topk", "max")
    # Subqueries are evaluated at multiples of the step. A range shorter than a minimum step may contain none.
    time_range = "${__range}${__interval_ms}ms" if min_step else "$__range"
    return f"{select}($topn, {worst}_over_time(({text})[{time_range}:$__interval]{at}))"


def _scope(line: Line, tables: bool, by: Sequence[str]) -> Scope:
    return Scope(_match(line, tables), by, WINDOW, "" if _min_step(line) else SPARSE)


def _min_step(line: Line) -> str:
    """Return the minimum step of a line's query; "" for the data source's setting."""
    of_rates = [part.metric for part in parts_of(line.signal.expression) if isinstance(part, Rate | Quantile)]
    intervals = [slowest_interval(CATALOGUE[name]) for name in of_rates if name in CATALOGUE]
    slowest = max(intervals, key=lambda scrape_interval: scrape_interval.value, default=ScrapeInterval.TICK)
    return MIN_STEPS.get(slowest, "")


def _legend(panel: Panel, line: Line) -> str:
    split = Split.CLUSTER if line.signal_name in CLIENT_SIGNALS else panel.split
    labels = " ".join(f"{{{{{label}}}}}" for label in panel.labels if label in line.signal.labels)
    # In a panel split by cluster, the line's name or the panel's labels are enough to identify a series.
    is_named = split is Split.CLUSTER and (labels or line.name) and not isinstance(panel, Stat)
    return " ".join(part for part in (line.name, labels, "" if is_named else _LEGENDS[split]) if part)


def _heatmap_query(panel: Panel, tables: bool) -> Query:
    (line,) = panel.lines
    quantile = line.signal.expression
    if not isinstance(quantile, Quantile):
        raise TypeError(f"{line.signal_name}: only a quantile has the buckets that a heat map shows")
    scope = _scope(line, tables, ())
    counts = rate(selector(f"{quantile.metric}_bucket", quantile.where, scope.match), scope)
    text = f"sum by (le) ({counts}) * $__interval_ms / 1000"
    return Query(text, "{{le}}", "buckets", min_interval=_min_step(line))


def _severity_queries(panel: Stat, tables: bool) -> list[Query]:
    """Return a query for each severity: each selects the clusters that have it at the end of the time range."""
    query, line = _line_query(panel, panel.lines[0], tables), Line(panel.severity)
    measure = _promql(line, _scope(line, tables, _labels(panel, line)))
    latest = f"last_over_time(({measure})[$__interval:$__interval] @ end())"
    threshold = THRESHOLDS[panel.severity]
    warned, critical = (f"on (cluster) ({latest} > {bound:g})" for bound in (threshold.warning, threshold.critical))
    return [
        replace(query, text=f"({query.text}) unless {warned}", colour=GREEN),
        replace(query, text=f"(({query.text}) and {warned}) unless {critical}", colour=ORANGE),
        replace(query, text=f"({query.text}) and {critical}", colour=VERMILLION),
    ]


def _spread_queries(panel: Panel, tables: bool) -> list[Query]:
    (line,) = panel.lines
    step, scope = _min_step(line), _scope(line, tables, NODE_LABELS)
    nodes, combined = _promql(line, scope), _promql(line, replace(scope, by=("cluster",)))
    return [
        Query(f"max by (cluster) ({nodes})", "worst node", min_interval=step),
        Query(combined, "all nodes combined", min_interval=step),
        Query(f"min by (cluster) ({nodes})", "best node", min_interval=step),
    ]

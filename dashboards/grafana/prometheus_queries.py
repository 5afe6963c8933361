"""What panels ask Prometheus, or VictoriaMetrics where it is asked as one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from collector.catalogue import CATALOGUE
from collector.model.metric import ScrapeInterval
from collector.sampling.selection import slowest_tier
from dashboards.expression import Expression, Quantile, Rate, Ratio, Rest
from dashboards.grafana import descriptions
from dashboards.grafana.panel_colours import BLUE, GREEN, ORANGE, PURPLE, VERMILLION
from dashboards.grafana.panel_model import Dashboard, Graph, Heatmap, Line, Number, Panel, Split, Spread, Worst
from dashboards.grafana.panel_query import Chosen, Mark, Query
from dashboards.promql import NODE_LABELS, Scope, selector, spelled
from dashboards.signals import load

CLUSTER = 'cluster=~"$cluster"'
# Other exporters serve node_* and process_* too, and some of their series have the same labels.
JOB = 'job=~"$job"'
NODE = ",".join((JOB, *(f'{label}=~"${label}"' for label in NODE_LABELS)))
WINDOW = "$__rate_interval"
# The window and the least step for rates of what is read more rarely than in every tick. The window holds at least four
# readings, and two scrapes a minute apart. $__rate_interval does not: Grafana 10.0 makes it four times the scrape
# interval of the data source, whatever the query's own step is.
RARE = {ScrapeInterval.OFTEN: ("2m", "30s"), ScrapeInterval.SLOW: ("4m", "60s")}
CLIENTS = {signal.name for signal in load.SIGNALS}
# Every agent has it, whatever becomes of its node.
ANY = "casstat_build_info"
_LABELS = {Split.CHOSEN: ("$by",), Split.NODE: NODE_LABELS, Split.CLUSTER: ("cluster",)}
_LEGENDS = {Split.CHOSEN: "{{${by:text}}}", Split.NODE: "{{node}}", Split.CLUSTER: "{{cluster}}"}


class Prometheus:
    """Asks in PromQL."""

    name, title = "prometheus", "Prometheus"
    by: Sequence[tuple[str, str]] = tuple(
        (label, ", ".join(NODE_LABELS[: place + 1])) for place, label in enumerate(NODE_LABELS)
    )

    def boards(self, boards: Sequence[Dashboard]) -> list[Dashboard]:
        """Return all of them."""
        return list(boards)

    def queries(self, panel: Panel, tables: bool) -> list[Query]:
        """Return what a panel asks."""
        if isinstance(panel, Spread):
            return _spread(panel, tables)
        if isinstance(panel, Heatmap):
            return [_heat(panel, tables)]
        return [_query(panel, line, tables) for line in panel.lines]

    def title_of(self, panel: Panel) -> str:
        """Return the panel's title."""
        return panel.name

    def text_of(self, panel: Panel) -> str:
        """Return the panel's description."""
        told = descriptions.description(panel)
        worst = f"the $topn with the {'lowest' if panel.lines[0].of.low_is_worse else 'highest'} value"
        if isinstance(panel, Worst):
            return f"The worst value of each in the time range, {worst}.\n\n{told}"
        if isinstance(panel, Graph) and panel.top:
            return f"{told}\n\nOnly {worst} in the time range."
        return told

    def chosen(self, board: Dashboard) -> list[Chosen]:
        """Return the variables in their order."""
        # All jobs that serve casstat's metrics, and no others: this one is not matched by a regular expression.
        found = [Chosen("job", "Job", f"label_values({ANY}, job)", all_value="")]
        for place, (label, title) in enumerate(_TITLES):
            before = ",".join((JOB, *(f'{each}=~"${each}"' for each, _ in _TITLES[:place])))
            found.append(Chosen(label, title, f"label_values({selector(ANY, (), before)}, {label})"))
        if board.tables:
            keyspaces = selector("cassandra_keyspace_operations_total", (), NODE)
            tables = selector("cassandra_table_operations_total", (), f'{NODE},keyspace=~"$keyspace"')
            found.append(Chosen("keyspace", "Keyspace", f"label_values({keyspaces}, keyspace)"))
            found.append(Chosen("table", "Table", f"label_values({tables}, table)"))
        return found

    def marks(self) -> list[Mark]:
        """Return the annotations; what several agents tell of one run is one."""
        schema = selector("cassandra_schema_version", (), NODE)
        before = f"{schema} offset $__interval"
        run = "max by (cluster, run{more}) (casstat_run_{what}_time_seconds{{" + NODE + "}}) * 1000"
        tags = ("cluster", "run")
        return [
            Mark(
                "Restarts",
                f"{selector('cassandra_jvm_start_time_seconds', (), NODE)} * 1000",
                VERMILLION,
                "Cassandra started",
                at_value=True,
            ),
            Mark(
                "Nodes unreachable",
                f"max by (cluster) ({selector('cassandra_endpoints_unreachable', (), NODE)}) > 0",
                ORANGE,
                "a node cannot be reached by another",
                ("cluster",),
            ),
            Mark(
                "Schema changes",
                # Of nodes that were there a step before: a node that returns has changed nothing.
                f"max by (cluster, schema_version) (({schema} unless {before}) and on (cluster, node) {before})",
                PURPLE,
                "schema {{schema_version}}",
                ("cluster",),
            ),
            Mark("Runs begin", run.format(more="", what="begin"), GREEN, "{{run}} begins", tags, at_value=True),
            Mark("Runs end", run.format(more="", what="end"), GREEN, "{{run}} ends", tags, at_value=True),
            Mark("Phases", run.format(more=", mark", what="mark"), BLUE, "{{mark}}", tags, at_value=True),
        ]

    def least_step(self, panel: Panel) -> str:
        """Return "": the data source sets it to its scrape interval, and single queries set a longer one."""
        return ""

    def target(self, query: Query, name: str) -> object:
        """Return a query as it stands in a panel's JSON."""
        from grafana_foundation_sdk.builders import prometheus as sdk
        from grafana_foundation_sdk.models.prometheus import PromQueryFormat

        made = sdk.Dataquery().expr(query.text).ref_id(name)
        if query.least_step:
            made = made.interval(query.least_step)
        if query.form == "table":
            return made.instant().format(PromQueryFormat.TABLE)
        made = made.range().legend_format(query.legend)
        return made.format(PromQueryFormat.HEATMAP if query.form == "buckets" else PromQueryFormat.TIME_SERIES)

    def annotation(self, mark: Mark) -> dict[str, object]:
        """Return the fields of an annotation that only this store has."""
        return {
            "expr": mark.query,
            "step": "10s",
            "titleFormat": mark.text,
            "tagKeys": ",".join(mark.tags),
            "useValueForTime": mark.at_value,
        }


_TITLES = (("cluster", "Cluster"), ("dc", "Data centre"), ("rack", "Rack"), ("node", "Node"))


def _match(line: Line, tables: bool) -> str:
    """Return the matchers of a signal's metrics: clients belong to no node."""
    if line.signal in CLIENTS:
        return CLUSTER
    chosen = [each for each in ("keyspace", "table") if tables and each in line.of.each]
    return ",".join((NODE, *(f'{each}=~"${each}"' for each in chosen)))


def _labels(panel: Panel, line: Line) -> tuple[str, ...]:
    labels = ("cluster",) if line.signal in CLIENTS else _LABELS[panel.split]
    return (*labels, *(each for each in panel.each if each in line.of.each))


def _query(panel: Panel, line: Line, tables: bool) -> Query:
    window, step = _window(line)
    text = _text(line, Scope(_match(line, tables), _labels(panel, line), window))
    if isinstance(panel, Worst):
        return Query(_worst(line, text), form="table", least_step=step)
    if isinstance(panel, Graph) and panel.top:
        # Chosen once for the whole time range: chosen at each step, series come and go, and lines become dots.
        text = f"({text}) and {_worst(line, text, ' @ end()')}"
    return Query(text, _legend(panel, line), least_step=step)


def _text(line: Line, scope: Scope) -> str:
    text = spelled(line.of.expression, scope)
    if line.of.bounded:
        text = f"clamp({text}, 0, 1)"
    # A ratio to nothing is NaN in PromQL: the comparison removes it.
    return f"({text}) >= 0" if descriptions.may_be_undefined(line) else text


def _worst(line: Line, text: str, at: str = "") -> str:
    """Return the query for the $topn series with the worst value in the time range."""
    choose, worst = ("bottomk", "min") if line.of.low_is_worse else ("topk", "max")
    return f"{choose}($topn, {worst}_over_time(({text})[$__range:{WINDOW}]{at}))"


def _window(line: Line) -> tuple[str, str]:
    """Return the window of a line's rates and its query's least step; "" for the data source's scrape interval."""
    tiers = [slowest_tier(CATALOGUE[name]) for name in _rates(line.of.expression) if name in CATALOGUE]
    return RARE.get(
        max(tiers, key=lambda scrape_interval: scrape_interval.value, default=ScrapeInterval.TICK), (WINDOW, "")
    )


def _rates(expression: Expression) -> Iterator[str]:
    """Yield the metrics of an expression that rates are taken of."""
    if isinstance(expression, Ratio | Rest):
        yield from _rates(expression.part)
        yield from _rates(expression.whole)
    elif isinstance(expression, Rate | Quantile):
        yield expression.metric


def _legend(panel: Panel, line: Line) -> str:
    split = Split.CLUSTER if line.signal in CLIENTS else panel.split
    each = " ".join(f"{{{{{label}}}}}" for label in panel.each if label in line.of.each)
    # What there is one of for each cluster needs the cluster's name least.
    of = "" if split is Split.CLUSTER and (each or line.name) and not isinstance(panel, Number) else _LEGENDS[split]
    return " ".join(part for part in (line.name, each, of) if part)


def _heat(panel: Panel, tables: bool) -> Query:
    (line,) = panel.lines
    quantile = line.of.expression
    if not isinstance(quantile, Quantile):
        raise TypeError(f"{line.signal} is no percentile: there are no buckets of it")
    buckets = selector(f"{quantile.metric}_bucket", quantile.where, _match(line, tables))
    window, step = _window(line)
    return Query(f"sum by (le) (increase({buckets}[{window}]))", "{{le}}", "buckets", least_step=step)


def _spread(panel: Panel, tables: bool) -> list[Query]:
    (line,) = panel.lines
    window, step = _window(line)
    scope = Scope(_match(line, tables), NODE_LABELS, window)
    nodes, together = _text(line, scope), _text(line, replace(scope, by=("cluster",)))
    return [
        Query(f"max by (cluster) ({nodes})", "worst node", least_step=step),
        Query(together, "all nodes together", least_step=step),
        Query(f"min by (cluster) ({nodes})", "best node", least_step=step),
    ]

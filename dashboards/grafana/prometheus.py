"""What panels ask Prometheus, or VictoriaMetrics where it is asked as one."""

from collections.abc import Sequence

from dashboards.expression import Quantile
from dashboards.grafana import words
from dashboards.grafana.panel import Board, Graph, Heat, Line, Number, Panel, Split, Spread, Worst
from dashboards.grafana.query import Chosen, Mark, Query
from dashboards.grafana.theme import BLUE, GREEN, ORANGE, PURPLE, VERMILLION
from dashboards.promql import NODE_LABELS, Scope, selector, spelled
from dashboards.signals import load
from dashboards.thresholds import THRESHOLDS

CLUSTER = 'cluster=~"$cluster"'
NODE = ",".join(f'{label}=~"${label}"' for label in NODE_LABELS)
WINDOW = "$__rate_interval"
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

    def boards(self, boards: Sequence[Board]) -> list[Board]:
        """Return all of them."""
        return list(boards)

    def queries(self, panel: Panel, tables: bool) -> list[Query]:
        """Return what a panel asks."""
        if isinstance(panel, Spread):
            return _spread(panel, tables)
        if isinstance(panel, Heat):
            return [_heat(panel, tables)]
        texts = {line: _text(panel, line, tables) for line in panel.lines}
        if isinstance(panel, Worst):
            return [
                Query(_top(line, f"{_worse(line)}_over_time(({text})[$__range:{WINDOW}])"), form="table")
                for line, text in texts.items()
            ]
        top = isinstance(panel, Graph) and panel.top
        return [Query(_top(line, text) if top else text, _legend(panel, line)) for line, text in texts.items()]

    def title_of(self, panel: Panel) -> str:
        """Return the panel's title."""
        return panel.name

    def text_of(self, panel: Panel) -> str:
        """Return the panel's description."""
        told = words.description(panel)
        if isinstance(panel, Worst):
            return f"Of each the worst moment in the time that is shown, the $topn worst of all.\n\n{told}"
        if isinstance(panel, Graph) and panel.top:
            return f"{told}\n\nAt each moment the $topn highest."
        return told

    def chosen(self, board: Board) -> list[Chosen]:
        """Return the variables in their order."""
        found = []
        for place, (label, title) in enumerate(_TITLES):
            before = ",".join(f'{each}=~"${each}"' for each, _ in _TITLES[:place])
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
                f"max by (cluster, schema_version) ({schema} unless {schema} offset 1m)",
                PURPLE,
                "schema {{schema_version}}",
                ("cluster",),
            ),
            Mark("Runs begin", run.format(more="", what="begin"), GREEN, "{{run}} begins", tags, at_value=True),
            Mark("Runs end", run.format(more="", what="end"), GREEN, "{{run}} ends", tags, at_value=True),
            Mark("Phases", run.format(more=", mark", what="mark"), BLUE, "{{mark}}", tags, at_value=True),
        ]

    def least_step(self, panel: Panel) -> str:
        """Return "": the data source knows how often it scrapes."""
        return ""

    def target(self, query: Query, name: str) -> object:
        """Return a query as it stands in a panel's JSON."""
        from grafana_foundation_sdk.builders import prometheus as sdk
        from grafana_foundation_sdk.models.prometheus import PromQueryFormat

        made = sdk.Dataquery().expr(query.text).ref_id(name)
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


def _text(panel: Panel, line: Line, tables: bool) -> str:
    text = spelled(line.of.expression, Scope(_match(line, tables), _labels(panel, line), WINDOW))
    # A part of nothing is no number, and shall not be there rather than stand there as one.
    return f"({text}) >= 0" if words.may_be_undefined(line) else text


def _top(line: Line, text: str) -> str:
    return f"{'topk' if _worse(line) == 'max' else 'bottomk'}($topn, {text})"


def _worse(line: Line) -> str:
    """Return whether it is the greatest or the least value of a signal that is the worst."""
    threshold = THRESHOLDS.get(line.signal)
    return "min" if threshold and threshold.below else "max"


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
    return Query(f"sum by (le) (increase({buckets}[{WINDOW}]))", "{{le}}", "buckets")


def _spread(panel: Panel, tables: bool) -> list[Query]:
    (line,) = panel.lines
    scope = Scope(_match(line, tables), NODE_LABELS, WINDOW)
    nodes = f"({spelled(line.of.expression, scope)}) >= 0"
    together = spelled(line.of.expression, Scope(scope.match, ("cluster",), WINDOW))
    return [
        Query(f"max by (cluster) ({nodes})", "worst node"),
        Query(f"({together}) >= 0", "all nodes together"),
        Query(f"min by (cluster) ({nodes})", "best node"),
    ]

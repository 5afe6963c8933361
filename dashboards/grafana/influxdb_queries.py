"""What panels ask InfluxDB, in InfluxQL, which version 2 answers too.

It has no buckets: of the percentiles of single nodes and intervals the greatest is shown, and panels say so. What only
Prometheus is told, casstat's own figures and those of clients, is not there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from collector.catalogue import CATALOGUE
from collector.sampling.selection import slowest_tier
from dashboards.expression import Expression, Ratio, Rest, metrics_of
from dashboards.grafana import descriptions
from dashboards.grafana.panel_colours import BLUE, PURPLE, VERMILLION
from dashboards.grafana.panel_model import Dashboard, Heatmap, Line, Note, Panel, Row, Split, Spread, States, Worst
from dashboards.grafana.panel_query import Chosen, Mark, Query, ref
from dashboards.influxql import Scope, spelled
from dashboards.promql import NODE_LABELS
from dashboards.signals import agent, load

ELSEWHERE = {signal.name for signal in (*agent.SIGNALS, *load.SIGNALS)}
GREATEST = (
    "InfluxDB has no buckets: of the nodes' own percentiles of single intervals the greatest is shown, which is never "
    "less than the true one of all together; nothing is averaged."
)
LACKS = (
    "Percentiles of several nodes together, heat maps, the clients' side of a load and casstat's own figures "
    "come by Prometheus only. Percentiles here are those of single nodes and intervals, the greatest where there are "
    "several: never less than the true one, and never averaged."
)
RARE = "run|restart|start|stop|node_up|node_down|node_joined|node_left|error"
_LABELS = {Split.CHOSEN: ("${by:raw}",), Split.NODE: NODE_LABELS, Split.CLUSTER: ("cluster",)}
_LEGENDS = {Split.CHOSEN: "$tag_${by:text}", Split.NODE: "$tag_node", Split.CLUSTER: "$tag_cluster"}


@dataclass(frozen=True)
class _Target:
    """A query as it stands in a panel's JSON; the SDK has none for this store."""

    query: Query
    name: str

    def build(self) -> "_Target":
        """Return itself, as the SDK wants it."""
        return self

    def to_json(self) -> dict[str, object]:
        """Return the fields."""
        if self.query.form == "math":
            grafana = {"type": "__expr__", "uid": "__expr__"}
            return {"refId": self.name, "datasource": grafana, "type": "math", "expression": self.query.text}
        return {
            "refId": self.name,
            "hide": not self.query.shown,
            "query": self.query.text,
            "rawQuery": True,
            "resultFormat": "table" if self.query.form == "table" else "time_series",
            "alias": self.query.legend,
        }


class InfluxDB:
    """Asks in InfluxQL."""

    name, title = "influxdb", "InfluxDB"
    by: Sequence[tuple[str, str]] = tuple(
        (label, ", ".join(f'"{each}"' for each in NODE_LABELS[: place + 1])) for place, label in enumerate(NODE_LABELS)
    )

    def boards(self, boards: Sequence[Dashboard]) -> list[Dashboard]:
        """Return what of the boards can be had: panels without what they lack, and a word on that."""
        found = []
        for board in boards:
            rows = tuple(Row(row.title, panels) for row in board.rows if (panels := _had(row)))
            if rows:
                note = Note(title="Limits of InfluxDB", text=LACKS, width=24, height=3)
                whole = rows == board.rows and not any(
                    descriptions.has_quantile(panel) for row in rows for panel in row.panels
                )
                found.append(replace(board, rows=rows if whole else (*rows, Row("About this board", (note,)))))
        return found

    def queries(self, panel: Panel, tables: bool) -> list[Query]:
        """Return what a panel asks."""
        if isinstance(panel, Worst):
            return [_worst(panel, line, tables) for line in panel.lines]
        found: list[Query] = []
        for line in panel.lines:
            scope = Scope(_match(line, tables), _labels(panel, line))
            _add(found, line.of.expression, scope, _legend(panel, line), shown=True)
        return found

    def title_of(self, panel: Panel) -> str:
        """Return the panel's title: whether it is the greatest that is shown."""
        return f"{panel.name} (max)" if descriptions.has_quantile(panel) else panel.name

    def text_of(self, panel: Panel) -> str:
        """Return the panel's description."""
        told = descriptions.description(panel)
        if isinstance(panel, Worst):
            told = f"Of each the worst moment in the time that is shown, the worst first.\n\n{told}"
        return f"{told}\n\n{GREATEST}" if descriptions.has_quantile(panel) else told

    def chosen(self, board: Dashboard) -> list[Chosen]:
        """Return the variables in their order."""
        titles = [("cluster", "Cluster"), ("dc", "Data centre"), ("rack", "Rack"), ("node", "Node")]
        titles += [("keyspace", "Keyspace"), ("table", "Table")] if board.tables else []
        names = [name for name, _ in titles]
        return [Chosen(name, title, _values(name, names[:place])) for place, (name, title) in enumerate(titles)]

    def marks(self) -> list[Mark]:
        """Return the annotations: what the agents and the nodes' logs tell of."""
        return [
            Mark("Runs, restarts, nodes", _events(RARE), VERMILLION, "text", ("kind", "node")),
            Mark("Repairs, streams, drops", _events("dropped|repair|stream|hints"), PURPLE, "text", ("kind", "node")),
            Mark("Collections, flushes", _events("gc|compaction|flush"), BLUE, "text", ("kind", "node"), enabled=False),
        ]

    def least_step(self, panel: Panel) -> str:
        """Return the least time between two values that a panel may ask for.

        What is read once a minute is read of each node at another second: a sum over less time lacks nodes.
        """
        metrics = {metric for line in panel.lines for metric in metrics_of(line.of.expression)}
        pace_s = max((slowest_tier(CATALOGUE[metric]).value for metric in metrics), default=0)
        return f"{max(1, round(2 * pace_s))}s"

    def target(self, query: Query, name: str) -> object:
        """Return a query as it stands in a panel's JSON."""
        return _Target(query, name)

    def annotation(self, mark: Mark) -> dict[str, object]:
        """Return the fields of an annotation that only this store has."""
        return {
            "query": mark.query,
            "fromAnnotations": True,
            "textColumn": mark.text,
            "tagsColumn": ",".join(mark.tags),
        }


def _had(row: Row) -> tuple[Panel, ...]:
    """Return the panels of a row as they can be had."""
    found: list[Panel] = []
    for panel in row.panels:
        lines = tuple(line for line in panel.lines if line.signal not in ELSEWHERE)
        if isinstance(panel, Note):
            found.append(panel)
        elif lines and not isinstance(panel, Heatmap | Spread | States):
            found.append(replace(panel, lines=lines))
    return () if all(isinstance(panel, Note) for panel in found) else tuple(found)


def _match(line: Line, tables: bool) -> str:
    chosen = [each for each in ("keyspace", "table") if tables and each in line.of.each]
    return " AND ".join(_matches((*NODE_LABELS, *chosen)))


def _matches(names: Sequence[str]) -> list[str]:
    return [f'"{name}" =~ /^${name}$/' for name in names]


def _labels(panel: Panel, line: Line) -> tuple[str, ...]:
    return (*_LABELS[panel.split], *(each for each in panel.each if each in line.of.each))


def _add(found: list[Query], expression: Expression, scope: Scope, legend: str, *, shown: bool) -> str:
    """Add what an expression asks, and return the name of its answer.

    What is made of several metrics is asked for apart, and Grafana calculates: InfluxDB does not.
    """
    if isinstance(expression, Ratio | Rest) and len(set(metrics_of(expression))) > 1:
        sign = "/" if isinstance(expression, Ratio) else "-"
        first, second = _sides(expression)
        names = [_add(found, each, scope, legend, shown=False) for each in (first, second)]
        found.append(Query(f"${names[0]} {sign} ${names[1]}", legend, "math", shown))
    else:
        found.append(Query(spelled(expression, scope), legend, shown=shown))
    return ref(len(found) - 1)


def _sides(expression: Ratio | Rest) -> tuple[Expression, Expression]:
    if isinstance(expression, Ratio):
        return expression.part, expression.whole
    return expression.whole, expression.part


def _worst(panel: Panel, line: Line, tables: bool) -> Query:
    of = (*NODE_LABELS, *(each for each in panel.each if each in line.of.each))
    tags = ", ".join(f'"{each}"' for each in of)
    inner = spelled(line.of.expression, Scope(_match(line, tables), _labels(panel, line)))
    # The time is bounded inside: here bounds that fall between two steps would lose all.
    worst = "min" if line.of.low_is_worse else "max"
    text = f'SELECT {worst}("value") AS "Value" FROM ({inner}) GROUP BY {tags}'  # noqa: S608
    return Query(text, form="table")


def _legend(panel: Panel, line: Line) -> str:
    each = " ".join(f"$tag_{label}" for label in panel.each if label in line.of.each)
    of = "" if panel.split is Split.CLUSTER and (each or line.name) else _LEGENDS[panel.split]
    return " ".join(part for part in (line.name, each, of) if part)


def _values(name: str, before: Sequence[str]) -> str:
    where = f" WHERE {' AND '.join(_matches(before))}" if before else ""
    return f'SHOW TAG VALUES WITH KEY = "{name}"{where}'


def _events(kinds: str) -> str:
    matches = " AND ".join(_matches(NODE_LABELS))
    selected = 'SELECT "text", "kind", "node" FROM "casstat_events"'
    return f'{selected} WHERE $timeFilter AND {matches} AND "kind" =~ /^({kinds})$/'

"""The queries of the committed dashboards, with variables interpolated as in Grafana. For example:

for dashboard in dashboards("prometheus"):
    for query in prometheus(dashboard):
        text = interpolated(query, Choice(node=("127.0.0.1", "127.0.0.2")))
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dashboards.grafana import dashboard_files

Json = dict[str, Any]
_VARIABLE = re.compile(r"\$\{(?P<braced>\w+)(?::(?P<form>\w+))?\}|\$(?P<plain>__\w+|[a-zA-Z]\w*)")
# The characters that Grafana escapes in values inserted into Prometheus or InfluxDB regular expressions.
_SPECIAL = re.compile(r"[\\^$.*+?()[\]{}|/]")


@dataclass(frozen=True)
class Query:
    """The query of a panel or an annotation.

    form            "series" over time, a "table" of values at one time, or the "buckets" of a heat map.
    by              the choices of the dashboard's variable $by, and the query text that each inserts.
    min_interval_s  the minimum step of the query, in seconds.
    """

    dashboard: str
    panel: str
    text: str
    form: str = "series"
    by: Mapping[str, str] = field(default_factory=dict)
    min_interval_s: int = 0


@dataclass(frozen=True)
class Choice:
    """The selected values of the variables, where () means "All". Times are in seconds since the epoch."""

    job: tuple[str, ...] = ("casstat",)
    cluster: tuple[str, ...] = ()
    dc: tuple[str, ...] = ()
    rack: tuple[str, ...] = ()
    node: tuple[str, ...] = ()
    keyspace: tuple[str, ...] = ()
    table: tuple[str, ...] = ()
    by: str = "node"
    topn: int = 5
    from_s: float = 0.0
    to_s: float = 0.0
    interval_s: int = 5
    rate_interval_s: int = 20


def dashboards(store: str) -> list[Json]:
    """Return the dashboards for "prometheus" or "influxdb" as Grafana loads them."""
    return [json.loads(text) for _, text in dashboard_files.packaged_dashboards(store)]


def panels(dashboard: Json) -> list[Json]:
    """Return a dashboard's panels, without the row titles that Grafana stores among them."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def prometheus(dashboard: Json) -> Iterator[Query]:
    """Yield the queries of a Prometheus dashboard's panels."""
    forms = {"table": "table", "heatmap": "buckets"}
    for panel in panels(dashboard):
        for target in panel.get("targets", ()):
            form = forms.get(target["format"], "series")
            min_interval_s = 60 * int(target.get("interval", "0m").removesuffix("m"))
            yield Query(dashboard["title"], panel["title"], target["expr"], form, _by(dashboard), min_interval_s)


def influxdb(dashboard: Json) -> Iterator[Query]:
    """Yield the queries of an InfluxDB dashboard's panels."""
    for panel in panels(dashboard):
        # Targets without a query are evaluated by Grafana itself.
        for target in (target for target in panel.get("targets", ()) if "query" in target):
            form = "table" if target["resultFormat"] == "table" else "series"
            yield Query(dashboard["title"], panel["title"], target["query"], form, _by(dashboard))


def annotations(dashboard: Json) -> Iterator[Query]:
    """Yield the queries of a dashboard's annotations."""
    for annotation in dashboard["annotations"]["list"]:
        text = annotation.get("expr") or annotation["query"]
        yield Query(dashboard["title"], annotation["name"], text, "series", _by(dashboard))


def all_queries(dashboard: Json) -> Iterator[Query]:
    """Yield the queries of a dashboard's panels and annotations, for either store."""
    yield from influxdb(dashboard) if "influxdb" in dashboard["tags"] else prometheus(dashboard)
    yield from annotations(dashboard)


def interpolated(query: Query, choice: Choice) -> str:
    """Return a query's text as Grafana sends it. Raises KeyError for an undefined variable."""
    values = _values(query, choice)

    def value(match: re.Match[str]) -> str:
        return values[match["braced"] or match["plain"]]

    return _VARIABLE.sub(value, query.text)


def variables(query: Query) -> set[str]:
    """Return the names of the variables in a query."""
    return {match["braced"] or match["plain"] for match in _VARIABLE.finditer(query.text)}


def _values(query: Query, choice: Choice) -> dict[str, str]:
    influx = query.text.startswith("SELECT")
    selectable = ("job", "cluster", "dc", "rack", "node", "keyspace", "table")
    interval_s = max(choice.interval_s, query.min_interval_s)
    span_ms = (round(1000 * choice.from_s), round(1000 * choice.to_s))
    return {
        **{name: _any_of(getattr(choice, name), influx=influx) for name in selectable},
        "by": query.by.get(choice.by, ""),
        "topn": str(choice.topn),
        "__rate_interval": f"{choice.rate_interval_s}s",
        "__interval": f"{interval_s}s",
        "__interval_ms": str(1000 * interval_s),
        "__range": f"{round(choice.to_s - choice.from_s)}s",
        "__from": str(span_ms[0]),
        "__to": str(span_ms[1]),
        "timeFilter": f"time >= {span_ms[0]}ms and time <= {span_ms[1]}ms",
    }


def _any_of(values: tuple[str, ...], *, influx: bool) -> str:
    """Return the regular expression for the selected values; () means "All", which the dashboards define as `.+`."""
    if not values:
        return ".+"
    # PromQL requires backslashes to be doubled in double-quoted strings.
    backslash = "\\" if influx else "\\\\"
    escaped = [_SPECIAL.sub(lambda match: backslash + match[0], value) for value in values]
    if not influx:
        escaped = [text.replace("\\\\/", "/") for text in escaped]
    return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"


def _by(dashboard: Json) -> dict[str, str]:
    for variable in dashboard["templating"]["list"]:
        if variable["name"] == "by":
            return {option["text"]: option["value"] for option in variable["options"]}
    return {}

"""Every question that the dashboards ask, with the variables filled in as Grafana fills them in.

for dashboard in dashboards("prometheus"):
    for query in prometheus(dashboard):
        text = filled(query, Choice(node=("127.0.0.1", "127.0.0.2")))
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dashboards.grafana import dashboard_files

Json = dict[str, Any]
_VARIABLE = re.compile(r"\$\{(?P<braced>\w+)(?::(?P<form>\w+))?\}|\$(?P<plain>__\w+|[a-zA-Z]\w*)")
# As Grafana escapes what is chosen for a regular expression, of Prometheus and of InfluxDB.
_SPECIAL = re.compile(r"[\\^$.*+?()[\]{}|/]")


@dataclass(frozen=True)
class Query:
    """One question of one panel.

    form      "series" over time, "table" of the values at one moment, "buckets" of a heat map.
    by        the choices of the dashboard's variable $by, each with what it means here.
    """

    dashboard: str
    panel: str
    text: str
    form: str = "series"
    by: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """What is chosen: () is All, and of `job` the jobs that there are. Times in seconds since the epoch."""

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
    """Return the dashboards of "prometheus" or "influxdb" as Grafana gets them."""
    return [json.loads(text) for _, text in dashboard_files.packaged_dashboards(store)]


def panels(dashboard: Json) -> list[Json]:
    """Return a dashboard's panels, without the titles of its rows."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def prometheus(dashboard: Json) -> Iterator[Query]:
    """Yield what a dashboard for Prometheus asks in its panels."""
    forms = {"table": "table", "heatmap": "buckets"}
    for panel in panels(dashboard):
        for target in panel.get("targets", ()):
            form = forms.get(target["format"], "series")
            yield Query(dashboard["title"], panel["title"], target["expr"], form, _by(dashboard))


def influxdb(dashboard: Json) -> Iterator[Query]:
    """Yield what a dashboard for InfluxDB asks in its panels."""
    for panel in panels(dashboard):
        # What Grafana itself calculates is no question to the store.
        for target in (each for each in panel.get("targets", ()) if "query" in each):
            form = "table" if target["resultFormat"] == "table" else "series"
            yield Query(dashboard["title"], panel["title"], target["query"], form, _by(dashboard))


def annotations(dashboard: Json) -> Iterator[Query]:
    """Yield what a dashboard asks for its annotations."""
    for each in dashboard["annotations"]["list"]:
        yield Query(dashboard["title"], each["name"], each.get("expr") or each["query"], "series", _by(dashboard))


def every(dashboard: Json) -> Iterator[Query]:
    """Yield all that a dashboard asks, whichever store it is for."""
    yield from influxdb(dashboard) if "influxdb" in dashboard["tags"] else prometheus(dashboard)
    yield from annotations(dashboard)


def filled(query: Query, choice: Choice) -> str:
    """Return a question as Grafana asks it. Raises KeyError for a variable that there is not."""
    values = _values(query, choice)

    def value(found: re.Match[str]) -> str:
        return values[found["braced"] or found["plain"]]

    return _VARIABLE.sub(value, query.text)


def variables(query: Query) -> set[str]:
    """Return the names of the variables in a question."""
    return {found["braced"] or found["plain"] for found in _VARIABLE.finditer(query.text)}


def _values(query: Query, choice: Choice) -> dict[str, str]:
    influx = query.text.startswith("SELECT")
    chosen = ("job", "cluster", "dc", "rack", "node", "keyspace", "table")
    span_ms = (round(1000 * choice.from_s), round(1000 * choice.to_s))
    return {
        **{name: _any_of(getattr(choice, name), influx=influx) for name in chosen},
        "by": query.by.get(choice.by, ""),
        "topn": str(choice.topn),
        "__rate_interval": f"{choice.rate_interval_s}s",
        "__interval": f"{choice.interval_s}s",
        "__range": f"{round(choice.to_s - choice.from_s)}s",
        "timeFilter": f"time >= {span_ms[0]}ms and time <= {span_ms[1]}ms",
    }


def _any_of(values: tuple[str, ...], *, influx: bool) -> str:
    """Return the regular expression that stands for several values: All is what the dashboards say it is."""
    if not values:
        return ".+"
    # In PromQL's double quotes a backslash is written twice.
    backslash = "\\" if influx else "\\\\"
    escaped = [_SPECIAL.sub(lambda found: backslash + found[0], value) for value in values]
    if not influx:
        escaped = [each.replace("\\\\/", "/") for each in escaped]
    return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"


def _by(dashboard: Json) -> dict[str, str]:
    for variable in dashboard["templating"]["list"]:
        if variable["name"] == "by":
            return {option["text"]: option["value"] for option in variable["options"]}
    return {}

"""Builds the dashboards' JSON with Grafana's SDK, which is needed only to regenerate the committed files."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from grafana_foundation_sdk.builders import dashboard as sdk
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model

from dashboards.grafana.definitions.all_dashboards import DASHBOARDS
from dashboards.grafana.influxdb_queries import InfluxDB
from dashboards.grafana.panel_model import Dashboard, arrange
from dashboards.grafana.panel_query import Store
from dashboards.grafana.panels import build_panel
from dashboards.grafana.prometheus_queries import Prometheus
from dashboards.grafana.variables import AnnotationJson, links, uid, variables

STORES: tuple[Store, ...] = (Prometheus(), InfluxDB())
REFRESH = "10s"
REFRESHES = ["5s", "10s", "30s", "1m", "5m", "15m"]
FROM = "now-30m"


def build_all() -> Iterator[tuple[str, str]]:
    """Yield each dashboard's path below `json` and its text."""
    for store in STORES:
        supported = store.dashboards(DASHBOARDS)
        for dashboard in supported:
            document = _build(store, dashboard, supported)
            text = json.dumps(document, cls=JSONEncoder, indent=1, ensure_ascii=False)
            yield f"{store.name}/{dashboard.name}.json", f"{text}\n"


def _build(store: Store, dashboard: Dashboard, linked: Sequence[Dashboard]) -> Any:
    suffix = "" if store.name == "prometheus" else f" ({store.title})"
    builder = sdk.Dashboard(f"Cassandra: {dashboard.title}{suffix}").uid(uid(store, dashboard))
    builder = builder.description(dashboard.description).tags(["casstat", "cassandra", store.name])
    builder = builder.timezone("browser").readonly().tooltip(model.DashboardCursorSync.CROSSHAIR).preload(False)
    builder = builder.time(FROM, "now").refresh(REFRESH).timepicker(sdk.TimePicker().refresh_intervals(REFRESHES))
    builder = builder.variables(variables(store, dashboard)).links(links(store, linked))
    builder = builder.annotations([AnnotationJson(store, annotation) for annotation in store.annotations()])
    return _with_panels(builder, store, dashboard).build()


def _with_panels(builder: Any, store: Store, dashboard: Dashboard) -> Any:
    """Add the rows and panels, and number them in order."""
    number = y = 0
    for row in dashboard.rows:
        number += 1
        builder = builder.with_row(sdk.Row(row.title).id(number).grid_pos(model.GridPos(x=0, y=y, w=24, h=1)))
        y += 1
        for panel, position in list(arrange(row.panels, y)):
            number += 1
            builder = builder.with_panel(build_panel(store, dashboard, panel, number, position))
            y = max(y, position.y + position.height)
    return builder

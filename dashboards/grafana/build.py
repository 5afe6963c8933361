"""Boards made by Grafana's SDK, as the JSON that Grafana takes. Only who makes them anew needs the SDK."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from grafana_foundation_sdk.builders import dashboard as sdk
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model

from dashboards.grafana.contents.all_dashboards import BOARDS
from dashboards.grafana.influxdb_queries import InfluxDB
from dashboards.grafana.layout import places
from dashboards.grafana.panel_model import Dashboard
from dashboards.grafana.panel_query import Store
from dashboards.grafana.panels import drawn
from dashboards.grafana.prometheus_queries import Prometheus
from dashboards.grafana.variables import Annotation, links, uid, variables

STORES: tuple[Store, ...] = (Prometheus(), InfluxDB())
REFRESH = "10s"
REFRESHES = ["5s", "10s", "30s", "1m", "5m", "15m"]
FROM = "now-30m"


def made() -> Iterator[tuple[str, str]]:
    """Yield every board's file, named as in `json`, and its text."""
    for store in STORES:
        boards = store.boards(BOARDS)
        for board in boards:
            text = json.dumps(_board(store, board, boards), cls=JSONEncoder, indent=1, ensure_ascii=False)
            yield f"{store.name}/{board.name}.json", f"{text}\n"


def _board(store: Store, board: Dashboard, boards: Sequence[Dashboard]) -> Any:
    found = sdk.Dashboard(f"Cassandra: {board.title}" + ("" if store.name == "prometheus" else f" ({store.title})"))
    found = found.uid(uid(store, board)).description(board.text).tags(["casstat", "cassandra", store.name])
    found = found.timezone("browser").readonly().tooltip(model.DashboardCursorSync.CROSSHAIR).preload(False)
    found = found.time(FROM, "now").refresh(REFRESH).timepicker(sdk.TimePicker().refresh_intervals(REFRESHES))
    found = found.variables(variables(store, board)).links(links(store, boards))
    found = found.annotations([Annotation(store, mark) for mark in store.marks()])
    return _filled(found, store, board).build()


def _filled(found: Any, store: Store, board: Dashboard) -> Any:
    """Return a board with its panels, numbered in their order."""
    number = y = 0
    for row in board.rows:
        number += 1
        found = found.with_row(sdk.Row(row.title).id(number).grid_pos(model.GridPos(x=0, y=y, w=24, h=1)))
        y += 1
        for panel, place in list(places(row.panels, y)):
            number += 1
            found = found.with_panel(drawn(store, board, panel, number, place))
            y = max(y, place.y + place.height)
    return found

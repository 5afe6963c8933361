"""The layout of panels on a dashboard's grid: row by row, from left to right."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dashboards.grafana.panel_model import Panel

COLUMNS = 24


class GridPosition(NamedTuple):
    """A panel's top-left corner and size, in grid units."""

    x: int
    y: int
    width: int
    height: int


def arrange(panels: Sequence[Panel], y: int) -> Iterator[tuple[Panel, GridPosition]]:
    """Yield panels with their positions; the first one is at the vertical position `y`.

    Raises ValueError for a panel that is wider than the dashboard.
    """
    x = row_height = 0
    for panel in panels:
        if panel.width > COLUMNS:
            raise ValueError(f"{panel.name}: {panel.width} columns exceed the dashboard's {COLUMNS}")
        if x + panel.width > COLUMNS:
            x, y, row_height = 0, y + row_height, 0
        yield panel, GridPosition(x, y, panel.width, panel.height)
        x, row_height = x + panel.width, max(row_height, panel.height)

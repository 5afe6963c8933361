"""Where panels stand on the board's grid of 24 columns: row by row, from left to right."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dashboards.grafana.panel_model import Panel

COLUMNS = 24


class Place(NamedTuple):
    """Where a panel stands."""

    x: int
    y: int
    width: int
    height: int


def places(panels: Sequence[Panel], y: int) -> Iterator[tuple[Panel, Place]]:
    """Yield the panels with their places from line `y` on. Raises ValueError for one wider than the board."""
    x = lowest = 0
    for panel in panels:
        if panel.width > COLUMNS:
            raise ValueError(f"{panel.name}: {panel.width} columns are more than a board has")
        if x + panel.width > COLUMNS:
            x, y, lowest = 0, y + lowest, 0
        yield panel, Place(x, y, panel.width, panel.height)
        x, lowest = x + panel.width, max(lowest, panel.height)

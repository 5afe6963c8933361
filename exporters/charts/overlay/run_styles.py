"""The styles of lines that belong to runs."""

from exporters.charts.plot_page import RIGHT_PX, SMALL_PT
from exporters.charts.plot_panel import LineStyle
from exporters.charts.text_escaping import shortened

# Yellow is left out, because it is hardly visible on a light background.
_COLOURS = ("blue", "vermillion", "green", "purple", "orange", "sky")
_POINTS = (7, 9, 5, 11, 13, 4)
_DASHES = ("solid", "'-'", "'.'")
# The width of a name in the legend, which also has a sample of the line.
_NAME_PX = RIGHT_PX - 52
MAX_RUNS = len(_COLOURS) * len(_DASHES)


def style_of(index: int) -> LineStyle:
    """Return the style of the run with this index, which is less than MAX_RUNS."""
    dash, colour = divmod(index, len(_COLOURS))
    return LineStyle(_COLOURS[colour], _POINTS[colour], _DASHES[dash], 1.6)


def title_of(name: str) -> str:
    """Return a run's name, shortened to the width of the legend."""
    return shortened(name, SMALL_PT, _NAME_PX)

"""Colours that colour-blind readers can distinguish: the Okabe-Ito palette, also used in the plots of runs."""

from exporters.charts.plot_colours import THEMES

_COLOURS = THEMES["light"].colours
BLUE, ORANGE, GREEN = _COLOURS["blue"], _COLOURS["orange"], _COLOURS["green"]
VERMILLION, PURPLE, SKY, YELLOW = (
    _COLOURS["vermillion"],
    _COLOURS["purple"],
    _COLOURS["sky"],
    _COLOURS["yellow"],
)
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION, YELLOW)
GOOD, WARNING, CRITICAL = GREEN, ORANGE, VERMILLION

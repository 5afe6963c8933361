"""The style sheet of a report: light and dark, for narrow screens and for print."""

from exporters.charts.plot_colours import OTHER_COLOURS, THEMES, VIRIDIS
from exporters.report.charts.latency_heat_map import LEVELS

_SHEET = """
*{box-sizing:border-box}
body{margin:0 auto;max-width:76rem;padding:1rem;background:var(--background);color:var(--ink);
font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.6rem;margin:.2rem 0}
h2{font-size:1.25rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--grid)}
h3{font-size:1rem;margin:1.2rem 0 .3rem}
p{margin:.4rem 0}
.subtitle,.note,.x-title,.texts{color:var(--faint);font-size:.875rem}
.verdict p:first-of-type{font-size:1.1rem}
.problem{color:var(--alarm);font-weight:600}
pre{white-space:pre-wrap;background:var(--shade);padding:.6rem;margin:.4rem 0}
.scroll{overflow-x:auto;position:relative}
.scroll:focus-visible,.stage:focus-visible,summary:focus-visible,a:focus-visible{outline:3px solid var(--reads);
outline-offset:2px}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums;margin:.6rem 0}
caption{text-align:left;font-weight:600;padding:.2rem 0}
th,td{padding:.2rem .6rem;border-bottom:1px solid var(--grid);text-align:right;vertical-align:top;
overflow-wrap:normal}
th{font-weight:600}
.text{text-align:left;min-width:4rem}
.long{overflow-wrap:anywhere}
figure{margin:1rem 0;break-inside:avoid}
.panel{display:grid;grid-template-columns:3.5rem minmax(0,1fr)}
.legend{grid-column:2;font-size:.8125rem;margin:.4rem 0 .1rem}
.key{white-space:nowrap;margin-left:.8rem}
.key svg{vertical-align:middle;margin-right:.25rem}
svg{display:block;overflow:visible}
.name{display:flex;flex-wrap:wrap;height:18px;overflow:hidden;font-size:12px;line-height:18px}
.name::before{content:"";height:18px}
.name span{flex:1 0 2em;min-width:0;padding-left:3px;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.key svg{display:inline-block}
.axis{width:3.5rem}
.plot,.strip{width:100%}
text{fill:var(--ink);font-size:12px}
.axis text{text-anchor:end;font-variant-numeric:tabular-nums}
.tic{text-anchor:middle}
.tic.first{text-anchor:start}
.tic.last{text-anchor:end}
.frame{fill:none;stroke:var(--grid)}
.grid{stroke:var(--grid)}
.excluded{fill:var(--shade)}
.phase{fill:none}
.edge{stroke:var(--mark);stroke-dasharray:2 3}
rect.alarm{fill:var(--alarm);fill-opacity:.18}
.event{fill:var(--mark)}
.event-line{stroke:var(--mark);stroke-dasharray:4 3;stroke-width:.8}
.line,.dots{fill:none;vector-effect:non-scaling-stroke;stroke-linecap:round;stroke-linejoin:round}
.line{stroke-width:1.6}
.dots{stroke-width:5;stroke-opacity:.6}
.reads{stroke:var(--reads)}
.writes{stroke:var(--writes);stroke-dasharray:5 3}
.client{stroke:var(--client)}
.max{stroke:var(--faint);stroke-width:.8}
.cell{stroke:none}
.cursor{stroke:var(--ink);visibility:hidden}
.on .cursor{visibility:visible}
output{display:block;min-height:1.5rem;font-size:.875rem;font-variant-numeric:tabular-nums}
ul.texts{margin:.2rem 0;padding-left:1.2rem}
@media (max-width:40rem){.minor{display:none}body{padding:.6rem}.panel{grid-template-columns:2.6rem minmax(0,1fr)}
.axis{width:2.6rem}th,td{padding:.2rem .35rem}}
@media print{body{max-width:none;font-size:.8rem}output,.hint{display:none}.scroll{overflow:visible}
table{font-size:.7rem}th,td{padding:.1rem .25rem}tr{break-inside:avoid}h2,h3,caption{break-after:avoid}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""


def style_sheet() -> str:
    """Return the style sheet; in print, the colours are those of the light theme."""
    light, dark = (_colours(theme) for theme in ("light", "dark"))
    return f"{light}@media screen and (prefers-color-scheme:dark){{{dark}}}{_SHEET}"


def _colours(theme: str) -> str:
    colours = THEMES[theme].colours
    names = ("background", "ink", "faint", "mark", "grid", "shade", "alarm", "reads", "writes", "tail")
    variables = {name: colours[name] for name in dict.fromkeys((*names, *OTHER_COLOURS))} | {"client": colours["green"]}
    strokes = "".join(f".{name}{{stroke:var(--{name})}}" for name in (*OTHER_COLOURS, "tail"))
    root = "".join(f"--{name}:{colour};" for name, colour in variables.items())
    shown = VIRIDIS[2:] if THEMES[theme].dark else VIRIDIS
    steps = [shown[round(level * (len(shown) - 1) / (LEVELS - 1))] for level in range(LEVELS)]
    return f":root{{{root}}}{strokes}{''.join(f'.c{level}{{fill:{colour}}}' for level, colour in enumerate(steps))}"

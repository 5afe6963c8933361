"""A report: its sections in their order, as Markdown, and as one HTML page that works without a network.

The page has its style sheet and script. Its content security policy permits only these.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from html import escape

from exporters.charts.plot_data import span_text
from exporters.charts.plot_style import OTHER_COLOURS, THEMES
from exporters.report import chart_sections, table_sections
from exporters.report.chart_sections import LEVELS
from exporters.report.report_blocks import Block, Chart, Command, Report, ReportData, Section, Table
from exporters.report.svg_chart import escaped, figure
from exporters.report.verdict import first_saturated, verdict
from exporters.texts import command_text, escaped_text, markdown_table, shown

SECTIONS: Sequence[tuple[str, Callable[[ReportData], Iterable[Block]]]] = (
    ("Verdict", verdict),
    ("Results by phase", table_sections.phase_tables),
    ("Difference from the baseline", table_sections.baseline_comparison),
    ("Over time", chart_sections.over_time),
    ("Latency", chart_sections.latency_distribution),
    ("Each node", chart_sections.each_node),
    ("What saturated first", first_saturated),
    ("Highest values", table_sections.highest_values),
    ("Events", chart_sections.events),
    ("Settings", table_sections.settings),
    ("Nodes, versions and clocks", table_sections.nodes_and_clocks),
    ("How to reproduce the run", table_sections.reproduction),
)
"""The titles and the contents of all sections."""


def report_of(data: ReportData) -> Report:
    """Return the report with those sections that have content."""
    sections = [Section(title, blocks) for title, content in SECTIONS if (blocks := [*content(data)])]
    return Report(shown(data.run.name), span_text(data.merged), sections)


# Words of this length, such as paths, may be broken in narrow columns.
_LONG_WORD = re.compile(r"(\S{25,})")
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
_SCRIPT = """
"use strict";
for (const figure of document.querySelectorAll("figure[data-chart]")) {
  const data = JSON.parse(document.getElementById(figure.dataset.chart).textContent);
  const stage = figure.querySelector(".stage"), output = figure.querySelector("output");
  const positions = [...new Set(data.sets.flatMap((set) => set.x))].sort((a, b) => a - b);
  let current = -1;
  const nearest = (list, x) => {
    let low = 0, high = list.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (list[middle] < x) low = middle; else high = middle;
    }
    return Math.abs(list[low] - x) <= Math.abs(list[high] - x) ? low : high;
  };
  const time = (x) => {
    const local = data.times[0] + data.times[2] + (x / 1000) * (data.times[1] - data.times[0]);
    return new Date(Math.round(local) * 1000).toISOString().slice(11, 19);
  };
  const show = (index) => {
    current = Math.max(0, Math.min(positions.length - 1, index));
    const x = positions[current], parts = [];
    let label = data.times ? time(x) : "";
    for (const set of data.sets) {
      const at = nearest(set.x, x);
      if (set.labels && !label) label = set.labels[at];
      const isNear = Math.abs(set.x[at] - x) <= set.near;
      for (const [name, unit, values] of set.lines) {
        const value = isNear ? values[at] : null;
        parts.push(name + ": " + (value === null ? "no value" : value.toLocaleString("en") + " " + unit));
      }
    }
    for (const line of figure.querySelectorAll(".cursor")) {
      line.setAttribute("x1", x / 10 + "%");
      line.setAttribute("x2", x / 10 + "%");
    }
    stage.classList.add("on");
    output.textContent = label + " \\u2014 " + parts.join(" \\u00b7 ");
  };
  stage.addEventListener("pointermove", (event) => {
    const box = figure.querySelector(".plot").getBoundingClientRect();
    show(nearest(positions, 1000 * (event.clientX - box.left) / box.width));
  });
  stage.addEventListener("focus", () => { if (current < 0) show(0); });
  stage.addEventListener("keydown", (event) => {
    const wide = Math.max(1, Math.round(positions.length / 20));
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -wide, PageDown: wide, Home: -Infinity, End: Infinity };
    if (!(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    show(current + steps[event.key]);
  });
}
"""
"""Each set of data has positions (`x`, from 0 to 1000), lines (name, unit, values) and `near`, the greatest distance at
which a value is shown. `times` has the beginning and the end of the axis, and the offset of local time, in seconds."""


def html_report(report: Report) -> str:
    """Return the page; all external text is escaped."""
    style = _style_sheet()
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(_SCRIPT)};"
        " base-uri 'none'; form-action 'none'"
    )
    sections = "".join(_section(section, number) for number, section in enumerate(report.sections))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy, quote=False)}"/>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        '<meta name="color-scheme" content="light dark"/>\n'
        f"<title>{escaped(report.title)} - casstat report</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<header><h1>{escaped(report.title)}</h1>\n<p class="subtitle">{escaped(report.subtitle)}</p></header>\n'
        f"<main>\n{sections}</main>\n<script>{_SCRIPT}</script>\n</body>\n</html>\n"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _section(section: Section, number: int) -> str:
    blocks = "".join(map(_block, section.blocks))
    style = ' class="verdict"' if number == 0 else ""
    heading = f'<h2 id="s{number}">{escaped(section.title)}</h2>'
    return f'<section{style} aria-labelledby="s{number}">{heading}\n{blocks}</section>\n'


def _block(block: Block) -> str:
    if isinstance(block, Chart):
        return figure(block)
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Command):
        return f"<pre>{escape(command_text(block.text))}</pre>\n"
    if block.is_problem:
        return f'<p class="problem"><span aria-hidden="true">⚠ </span>{escaped(block.text)}</p>\n'
    return f"<p>{escaped(block.text)}</p>\n"


def _table(table: Table) -> str:
    header = "".join(_header_cell(table, column, text) for column, text in enumerate(table.header))
    rows = "".join(f"<tr>{''.join(_cell(table, *cell) for cell in enumerate(row))}</tr>\n" for row in table.rows)
    caption = escaped(table.caption)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{caption}"><table><caption>{caption}</caption>\n'
        f"<thead><tr>{header}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    )


def _header_cell(table: Table, column: int, text: str) -> str:
    # An empty th would be a header without a name.
    return f'<th scope="col"{_style(table, column)}>{escaped(text)}</th>' if text else "<td></td>"


def _cell(table: Table, column: int, text: str) -> str:
    if column == 0:
        return f'<th scope="row"{_style(table, column)}>{_cell_text(text)}</th>'
    return f"<td{_style(table, column)}>{_cell_text(text)}</td>"


def _cell_text(text: str) -> str:
    return _LONG_WORD.sub(r'<span class="long">\1</span>', escaped(text))


def _style(table: Table, column: int) -> str:
    return ' class="text"' if column < table.text_columns else ""


def _style_sheet() -> str:
    """Return the style sheet; in print, the colours are those of the light theme."""
    light, dark = (_colours(theme) for theme in ("light", "dark"))
    return f"{light}@media screen and (prefers-color-scheme:dark){{{dark}}}{_SHEET}"


def _colours(theme: str) -> str:
    colours = THEMES[theme].colours
    names = ("background", "ink", "faint", "mark", "grid", "shade", "alarm", "reads", "writes", "tail")
    variables = {name: colours[name] for name in dict.fromkeys((*names, *OTHER_COLOURS))} | {"client": colours["green"]}
    strokes = "".join(f".{name}{{stroke:var(--{name})}}" for name in (*OTHER_COLOURS, "tail"))
    root = "".join(f"--{name}:{colour};" for name, colour in variables.items())
    shown = THEMES[theme].heat_map
    steps = [shown[round(level * (len(shown) - 1) / (LEVELS - 1))] for level in range(LEVELS)]
    return f":root{{{root}}}{strokes}{''.join(f'.c{level}{{fill:{colour}}}' for level, colour in enumerate(steps))}"


_BACKTICKS = re.compile(r"`+")


def markdown_report(report: Report) -> str:
    """Return the report as Markdown; all external text is escaped."""
    lines = [f"# {escaped_text(report.title)}", "", escaped_text(report.subtitle), ""]
    for section in report.sections:
        lines += [f"## {escaped_text(section.title)}", ""]
        for block in section.blocks:
            lines += [*_lines(block), ""]
    return "\n".join(lines).rstrip() + "\n"


def _lines(block: Block) -> list[str]:
    if isinstance(block, Chart):
        return [f"### {escaped_text(block.title)}", "", *(f"- {escaped_text(text)}" for text in block.texts)]
    if isinstance(block, Table):
        is_text = [column < block.text_columns for column in range(len(block.header))]
        return [f"{escaped_text(block.caption)}:", "", *markdown_table(block.header, block.rows, is_text)]
    if isinstance(block, Command):
        return _code(command_text(block.text))
    text = escaped_text(block.text)
    return [f"**{text}**" if block.is_problem else text]


def _code(text: str) -> list[str]:
    """Return a code block with a fence that is longer than any sequence of backticks in the text."""
    longest = max((len(ticks) for ticks in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, text, fence]

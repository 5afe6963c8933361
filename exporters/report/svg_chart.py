"""A chart as HTML: its lines and points as SVG paths, one SVG per panel, and the values that the script shows.

With one SVG per panel, text keeps its size at every width.
"""

import json
from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from math import log10

from exporters.charts.axes import Scale, short
from exporters.report.report_blocks import WIDTH, Chart, ChartLine, Panel, Span
from exporters.texts import shown, significant

_STRIP_PX, _EVENT_PX, _TICS_PX = 18, 10, 20
_MIN_TIC_PX = 14
# A value is shown if its distance from the pointer is at most this multiple of the median distance between values.
_NEAR = 0.75


def y_of(scale: Scale, value: float | None, height: int) -> float | None:
    """Return the distance of a value from the panel's top; None if it is absent or cannot be drawn."""
    if value is None or (scale.log and value <= 0):
        return None
    low, high = (log10(scale.low), log10(scale.high)) if scale.log else (scale.low, scale.high)
    share = ((log10(value) if scale.log else value) - low) / (high - low)
    return height * (1 - min(max(share, 0.0), 1.0))


def _line(line: ChartLine, scale: Scale, height: int) -> str:
    """Return a line that breaks where values are absent; an isolated value becomes a dot."""
    commands = []
    is_open = False
    for position, value in zip(line.x, line.values, strict=True):
        y = y_of(scale, value, height)
        if y is not None:
            commands.append(f"L{position:.5g} {y:.4g}" if is_open else f"M{position:.5g} {y:.4g}h0")
        is_open = y is not None
    drawn = "".join(commands)
    return f'<path class="line {line.style}" d="{drawn}"/>' if drawn else ""


def _dots(line: ChartLine, scale: Scale, height: int) -> str:
    points = ((position, y_of(scale, value, height)) for position, value in zip(line.x, line.values, strict=True))
    drawn = "".join(f"M{position:.4g} {y:.4g}h0" for position, y in points if y is not None)
    return f'<path class="dots {line.style}" d="{drawn}"/>' if drawn else ""


def escaped(text: str) -> str:
    """Return external text escaped for an element or a quoted attribute."""
    return escape(shown(text))


def figure(chart: Chart) -> str:
    keys = "Arrow keys, Page Up, Page Down, Home and End move between values."
    panels = "".join(_panel(chart, panel, number) for number, panel in enumerate(chart.panels))
    texts = "".join(f"<li>{escaped(text)}</li>" for text in chart.texts)
    return (
        f'<figure data-chart="data-{chart.name}"><h3>{escaped(chart.title)}</h3>'
        f'<div class="stage" tabindex="0" role="group" aria-label="{escaped(chart.title)}. {keys}">'
        f"{_phase_strip(chart)}{panels}{_tics(chart)}</div>"
        f'<p class="x-title">{escaped(chart.x_title)}</p><output></output>'
        f'<ul class="texts">{texts}</ul>'
        f'<script type="application/json" id="data-{chart.name}">{_data(chart)}</script></figure>\n'
    )


def _row(content: str) -> str:
    return f'<div class="panel"><span></span>{content}</div>'


def _phase_strip(chart: Chart) -> str:
    """Return the names of the phases; a name that does not fit ends with an ellipsis or is not shown."""
    named = [span for span in chart.spans if span.name]
    if not named:
        return ""
    texts = "".join(
        f'<foreignObject x="{_percent(span.begin)}" width="{_percent(span.end - span.begin)}" height="{_STRIP_PX}">'
        f'<div class="name" title="{escaped(span.name)}"><span>{escaped(span.name)}</span></div></foreignObject>'
        for span in named
        if span.style != "alarm"
    )
    return _row(f'<svg class="strip" height="{_STRIP_PX}" aria-hidden="true">{texts}</svg>') if texts else ""


def _panel(chart: Chart, panel: Panel, number: int) -> str:
    name = f"{chart.name}-{number}"
    height = panel.height
    draw = _dots if panel.is_dotted else _line
    content = panel.content or "".join(draw(line, panel.scale, height) for line in panel.lines)
    keys = "".join(_key(text, style, content) for text, style in panel.legend.items())
    tics = _y_tics(panel.scale, height)
    labels = "".join(f'<text x="90%" y="{y + 4:.4g}">{label}</text>' for y, label in tics if label)
    grid = "".join(f'<line class="grid" x2="100%" y1="{y:.4g}" y2="{y:.4g}"/>' for y, _ in tics)
    texts = escaped("; ".join(chart.texts))
    return (
        f'<div class="panel"><p class="legend">{escaped(panel.title)}{keys}</p>'
        f'<svg class="axis" height="{height}" aria-hidden="true">{labels}</svg>'
        f'<svg class="plot" role="img" height="{height}" aria-labelledby="t-{name} d-{name}">'
        f'<title id="t-{name}">{escaped(chart.title)}: {escaped(panel.title)}</title><desc id="d-{name}">{texts}</desc>'
        f"{''.join(_span(span, height) for span in chart.spans)}{grid}"
        # It comes before the lines, because it would hide those at 0 and at 100%.
        f'<rect class="frame" width="100%" height="{height}"/>'
        f'<svg viewBox="0 0 {WIDTH:g} {height}" preserveAspectRatio="none" width="100%" height="{height}">'
        f"{content}</svg>{''.join(_event_lines(chart, height))}"
        f'<line class="cursor" y2="{height}"/></svg></div>'
    )


def _key(name: str, style: str, content: str) -> str:
    kind, width = ("dots", 0) if 'class="dots' in content else ("line", 22)
    sample = f'<svg width="26" height="8" aria-hidden="true"><path class="{kind} {style}" d="M2 4h{width}"/></svg>'
    return f'<span class="key">{sample}{escaped(name)}</span>'


def _y_tics(scale: Scale, height: int) -> list[tuple[float, str]]:
    """Return the tics with their labels; a label too close to the one below it is empty."""
    tics: list[tuple[float, str]] = []
    last = float("inf")
    for value in scale.tics:
        y = y_of(scale, value, height)
        if y is not None:
            is_clear = last - y >= _MIN_TIC_PX
            tics.append((y, short(value) if is_clear else ""))
            last = y if is_clear else last
    return tics


def _span(span: Span, height: int) -> str:
    begin, width = _percent(span.begin), _percent(span.end - span.begin)
    shape = f'<rect class="{span.style}" x="{begin}" width="{width}" height="{height}"/>'
    edge = f'<line class="edge" x1="{begin}" x2="{begin}" y2="{height}"/>' if span.style != "alarm" else ""
    return shape + edge


def _event_lines(chart: Chart, height: int) -> Iterator[str]:
    for event in chart.events:
        x = _percent(event.x)
        yield f'<line class="event-line" x1="{x}" x2="{x}" y2="{height}"/>'


def _tics(chart: Chart) -> str:
    """Return the dots of events, with their texts as tooltips, and the labels of the horizontal axis."""
    events = "".join(
        f'<circle class="event" cx="{_percent(event.x)}" cy="{_EVENT_PX / 2:g}" r="4">'
        f"<title>{escape(chr(10).join(map(shown, event.lines)))}</title></circle>"
        for event in chart.events
    )
    top = _EVENT_PX if events else 0
    labels = "".join(
        f'<text class="tic{_end(tic.x)}{" minor" if tic.is_minor else ""}" x="{_percent(tic.x)}" y="{top + 14}">'
        f"{escaped(tic.label)}</text>"
        for tic in chart.tics
    )
    return _row(f'<svg class="strip" height="{top + _TICS_PX}" aria-hidden="true">{events}{labels}</svg>')


def _end(x: float) -> str:
    """Return the class of a label that would extend beyond the axis if it were centred."""
    return " first" if x < WIDTH * 0.03 else " last" if x > WIDTH * 0.97 else ""


def _percent(x: float) -> str:
    return f"{100 * x / WIDTH:.5g}%"


def _data(chart: Chart) -> str:
    axis = chart.time_axis
    # One set for all lines with the same positions.
    sets: dict[tuple[float, ...], list[ChartLine]] = {}
    for line in (line for panel in chart.panels for line in panel.lines):
        sets.setdefault(tuple(line.x), []).append(line)
    content = {
        "times": None if axis is None else [round(axis.begin_s, 3), round(axis.end_s, 3), axis.zone_s],
        "sets": [_set(x, lines, chart.labels) for x, lines in sets.items()],
    }
    # `<` could end the script element.
    return json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _set(positions: Sequence[float], lines: Sequence[ChartLine], labels: Sequence[str]) -> dict[str, object]:
    x = [round(position, 2) for position in positions]
    distances = sorted(after - before for before, after in pairwise(x))
    return {
        "x": x,
        "near": round(_NEAR * distances[len(distances) // 2], 3) if distances else WIDTH,
        "labels": [shown(label) for label in labels] or None,
        "lines": [
            [shown(line.name), line.unit, [None if value is None else significant(value) for value in line.values]]
            for line in lines
        ],
    }

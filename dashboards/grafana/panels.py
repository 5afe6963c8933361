"""Panels as Grafana draws them, with its built-in kinds of panel alone."""

from collections.abc import Iterator
from typing import Any

from grafana_foundation_sdk.builders import common, heatmap, stat, statetimeline, table, text, timeseries
from grafana_foundation_sdk.builders import dashboard as sdk
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode, HeatmapColorScale
from grafana_foundation_sdk.models.text import TextMode

from dashboards.grafana import descriptions, panel_colours
from dashboards.grafana.layout import Place
from dashboards.grafana.panel_model import Dashboard, Graph, Heatmap, Note, Number, Panel, Spread, States, Worst
from dashboards.grafana.panel_query import Query, Store, ref
from dashboards.grafana.threshold_steps import limits, lines
from dashboards.grafana.variables import source_of, uid
from dashboards.promql import NODE_LABELS
from dashboards.signals.signal import Unit

# The least upper end of an axis. Where all values are 0 Grafana's own is 100, which is 10,000 % of a ratio.
SOFT_MAX = {
    Unit.PER_S: 1.0,
    Unit.SECONDS: 0.001,
    Unit.BYTES: 1024.0,
    Unit.BYTES_PER_S: 1024.0,
    Unit.RATIO: 0.01,
    Unit.COUNT: 1.0,
}


def drawn(store: Store, board: Dashboard, panel: Panel, number: int, place: Place) -> Any:
    """Return a panel in the SDK's terms."""
    kind = _note(panel) if isinstance(panel, Note) else _asking(store, board, panel)
    where = model.GridPos(x=place.x, y=place.y, w=place.width, h=place.height)
    described = store.text_of(panel) if panel.lines else panel.text
    return kind.id(number).title(store.title_of(panel)).description(described).grid_pos(where)


def _note(panel: Panel) -> Any:
    return text.Panel().mode(TextMode.MARKDOWN).content(panel.text)


def _asking(store: Store, board: Dashboard, panel: Panel) -> Any:
    queries = store.queries(panel, board.tables)
    made = _kind(store, panel, queries).datasource(source_of(store)).no_value(descriptions.no_value(panel))
    if not isinstance(panel, Heatmap):
        made = made.unit(panel.lines[0].of.unit.value)
    if step := store.least_step(panel):
        made = made.interval(step)
    return made.targets([store.target(query, ref(place)) for place, query in enumerate(queries)])


def _kind(store: Store, panel: Panel, queries: list[Query]) -> Any:
    if isinstance(panel, Heatmap):
        return _heat(panel)
    if isinstance(panel, Worst):
        return _worst(store, panel)
    if isinstance(panel, Number):
        return _number(panel)
    if isinstance(panel, States):
        return _states()
    return _graph(panel, queries)


def _graph(panel: Panel, queries: list[Query]) -> Any:
    legend = common.VizLegendOptions().display_mode(kinds.LegendDisplayMode.TABLE)
    unit, low = panel.lines[0].of.unit, panel.lines[0].of.low_is_worse
    legend = legend.placement(kinds.LegendPlacement.BOTTOM).show_legend(True)
    legend = legend.calcs(["lastNotNull", "min" if low else "max"]).sort_by("Min" if low else "Max").sort_desc(not low)
    tooltip = common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI).sort(kinds.SortOrder.DESCENDING)
    made = timeseries.Panel().legend(legend).tooltip(tooltip)
    made = made.line_width(1).fill_opacity(5).show_points(kinds.VisibilityMode.AUTO)
    made = made.axis_soft_min(0).axis_soft_max(SOFT_MAX[unit])
    if unit is Unit.RATIO:
        made = made.decimals(1)
    if isinstance(panel, Graph) and panel.stacked:
        stacking = common.StackingConfig().mode(kinds.StackingMode.NORMAL).group("A")
        made = made.stacking(stacking).fill_opacity(40)
    shown = [place for place, query in enumerate(queries) if query.shown]
    for number, place in enumerate(shown):
        if len(shown) > 1:
            made = made.override_by_query(ref(place), [_colour(panel, number)])
        if queries[place].form == "math":
            for name in _names_of_math(panel, ref(place), queries[place].legend.partition("$")[0]):
                made = made.with_transformation(name)
    steps = lines(panel.lines[0])
    if len(steps) > 1 and (len(shown) == 1 or isinstance(panel, Spread)):
        dashed = common.GraphThresholdsStyleConfig().mode(kinds.GraphThresholdsStyleMode.DASHED)
        made = made.thresholds_style(dashed).thresholds(_thresholds(steps))
    return made.color_scheme(sdk.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC))


def _names_of_math(panel: Panel, name: str, prefix: str) -> Iterator[Any]:
    """Yield what names the series that Grafana calculates, which have no legend: `C {cluster="a", node="b"}` is "b".

    Of the node and what it is part of it is the narrowest that the series have. The first pattern that fits renames.
    """
    each = [label for label in panel.each if label in panel.lines[0].of.each]
    for narrowest in reversed(NODE_LABELS):
        labels = [*each, narrowest]
        pattern = "".join(f'(?=.*\\b{label}="([^"]*)")' for label in labels)
        names = " ".join(f"${place + 1}" for place in range(len(labels)))
        options = {"regex": f"^{name} {pattern}.*$", "renamePattern": f"{prefix}{names}"}
        yield model.DataTransformerConfig(id_val="renameByRegex", options=options)


def _colour(panel: Panel, place: int) -> Any:
    """Return the colour of a query's lines: one where it has one line, its shades where it may have several."""
    one = isinstance(panel, Spread)
    value = {
        "mode": "fixed" if one else "shades",
        "fixedColor": panel_colours.PALETTE[place % len(panel_colours.PALETTE)],
    }
    return model.DynamicConfigValue(id_val="color", value=value)


def _thresholds(steps: list[tuple[float | None, str]]) -> Any:
    found = [model.Threshold(value=value, color=colour) for value, colour in steps]
    return sdk.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(found)


def _number(panel: Panel) -> Any:
    reduced = common.ReduceDataOptions().calcs(["lastNotNull"]).fields("").values(False)
    made = stat.Panel().reduce_options(reduced).graph_mode(kinds.BigValueGraphMode.AREA)
    made = made.text_mode(kinds.BigValueTextMode.VALUE_AND_NAME).justify_mode(kinds.BigValueJustifyMode.AUTO)
    steps = limits(panel.lines[0])
    colour = kinds.BigValueColorMode.VALUE if len(steps) > 1 else kinds.BigValueColorMode.NONE
    by = sdk.FieldColor().mode(model.FieldColorModeId.THRESHOLDS)
    return made.color_mode(colour).thresholds(_thresholds(steps)).color_scheme(by)


def _heat(panel: Panel) -> Any:
    colours = heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Viridis").reverse(True)
    colours = colours.scale(HeatmapColorScale.EXPONENTIAL).exponent(0.5).steps(64)
    axis = heatmap.YAxisConfig().unit(panel.lines[0].of.unit.value).axis_placement(kinds.AxisPlacement.LEFT)
    made = heatmap.Panel().calculate(False).color(colours).y_axis(axis).show_legend()
    # Counts are no seconds: the unit of the axis is that of the buckets.
    return made.cell_values(heatmap.CellValues().unit("short")).show_y_histogram().cell_gap(0).unit("short")


def _states() -> Any:
    words_of = {
        "0": model.ValueMappingResult(text="no", color=panel_colours.CRITICAL, index=0),
        "1": model.ValueMappingResult(text="yes", color=panel_colours.GOOD, index=1),
    }
    made = statetimeline.Panel().show_value(kinds.VisibilityMode.AUTO).merge_values(True).row_height(0.8)
    made = made.mappings([model.ValueMap(options=words_of)])
    steps: list[tuple[float | None, str]] = [(None, panel_colours.CRITICAL), (1, panel_colours.GOOD)]
    return made.thresholds(_thresholds(steps)).color_scheme(sdk.FieldColor().mode(model.FieldColorModeId.THRESHOLDS))


def _worst(store: Store, panel: Panel) -> Any:
    hidden = dict.fromkeys(["Time", "cluster", "dc", "rack", "le", "__name__"], True)
    order = {name: place for place, name in enumerate([*panel.each, "node", "Value"])}
    arranged = {"excludeByName": hidden, "indexByName": order, "renameByName": {"Value": panel.name}}
    made = table.Panel().show_header(True)
    worst_first = common.TableSortByFieldState().display_name(panel.name).desc(not panel.lines[0].of.low_is_worse)
    made = made.sort_by([worst_first])
    made = made.with_transformation(model.DataTransformerConfig(id_val="organize", options=arranged))
    steps = limits(panel.lines[0])
    if len(steps) > 1:
        made = made.thresholds(_thresholds(steps)).override_by_name(
            panel.name, [model.DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-text"})]
        )
    return made.override_by_name("node", [model.DynamicConfigValue(id_val="links", value=[_to_node(store)])])


def _to_node(store: Store) -> dict[str, object]:
    board = uid(store, Dashboard("node", "Node", ""))
    keep = "${__url_time_range}&${datasource:queryparam}&${cluster:queryparam}"
    return {"title": "Show this node", "url": f"/d/{board}?{keep}&var-node=${{__value.raw}}"}

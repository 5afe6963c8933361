"""Builds the dashboards' JSON with Grafana's SDK, which is needed only to regenerate the committed files.

Panels have only the types that come with Grafana. All dashboards share variables, annotations and links.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from grafana_foundation_sdk.builders import common, heatmap, stat, statetimeline, table, text, timeseries
from grafana_foundation_sdk.builders import dashboard as sdk
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode, HeatmapColorScale
from grafana_foundation_sdk.models.text import TextMode

from dashboards.expression import Gauge
from dashboards.grafana import panel_model
from dashboards.grafana.definitions.all_dashboards import DASHBOARDS
from dashboards.grafana.influxdb_queries import InfluxDB
from dashboards.grafana.panel_model import (
    CRITICAL,
    GOOD,
    NO_STATE,
    WARNING,
    Annotation,
    Dashboard,
    GridPosition,
    Heatmap,
    JsonFields,
    Line,
    Panel,
    Query,
    Split,
    Spread,
    Stat,
    StateTimeline,
    TextPanel,
    Variable,
    WorstTable,
    arrange,
    ref_id,
)
from dashboards.grafana.prometheus_queries import Prometheus
from dashboards.promql import NODE_LABELS
from dashboards.signals.signal import Unit
from dashboards.thresholds import THRESHOLDS, Threshold

Store = Prometheus | InfluxDB
"""A kind of data source."""
SOURCE = "${datasource}"
TOPN = ("5", "10", "20", "50")


def data_source(store: Store) -> Any:
    """Return the reference to the data source that the dashboard's first variable selects."""
    return model.DataSourceRef(type_val=store.name, uid=SOURCE)


def variables(store: Store, dashboard: Dashboard) -> list[Any]:
    """Return the variables: the data source, then the selectors that the store provides, then the display options."""
    selectors = [_query_variable(store, variable) for variable in store.variables(dashboard)]
    source = sdk.DatasourceVariable("datasource").label("Data source").type(store.name)
    by = _custom("by", "Split by", store.by, "node", "What each line represents: a cluster, data centre, rack or node.")
    topn = _custom(
        "topn", "Worst", [(count, count) for count in TOPN], "5", "The number of series to show, worst first."
    )
    panels = [panel for row in dashboard.rows for panel in row.panels]
    split = [by] if any(panel.lines and panel.split is Split.VARIABLE for panel in panels) else []
    queries = [query for panel in panels if panel.lines for query in store.queries(panel, dashboard.tables)]
    worst = [topn] if any("$topn" in query.text for query in queries) else []
    return [source, *selectors, *split, *worst]


def _query_variable(store: Store, variable: Variable) -> Any:
    query: Any = variable.query
    if store.name == "prometheus":
        query = {"query": variable.query, "refId": f"variable-{variable.name}"}
    builder = sdk.QueryVariable(variable.name).label(variable.title).query(query).datasource(data_source(store))
    builder = builder.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(model.VariableSort.ALPHABETICAL_ASC)
    everything = model.VariableOption(selected=True, text=["All"], value=["$__all"])
    builder = builder.multi(True).include_all(True).current(everything)
    return builder.all_value(variable.all_value) if variable.all_value else builder


def _custom(name: str, title: str, choices: Sequence[tuple[str, str]], default: str, description: str) -> Any:
    query = ",".join(f"{text} : {value.replace(',', chr(92) + ',')}" for text, value in choices)
    options = [model.VariableOption(selected=text == default, text=text, value=value) for text, value in choices]
    (current,) = [option for option in options if option.selected]
    builder = sdk.CustomVariable(name).label(title).description(description).values(query)
    return builder.options(options).current(current).allow_custom_value(False)


def links(store: Store, linked: Sequence[Dashboard]) -> list[Any]:
    """Return links to all of a store's dashboards; they keep the time range and the variables."""
    return [
        sdk.DashboardLink(dashboard.title)
        .type(model.DashboardLinkType.LINK)
        .url(f"/d/{uid(store, dashboard)}")
        .tooltip(dashboard.description.partition(".")[0])
        .icon("dashboard")
        .keep_time(True)
        .include_vars(True)
        for dashboard in linked
    ]


def uid(store: Store, dashboard: Dashboard) -> str:
    """Return the dashboard's uid, which links and uploads depend on."""
    return f"casstat-{dashboard.name}" if store.name == "prometheus" else f"casstat-{dashboard.name}-{store.name}"


def _annotation(store: Store, annotation: Annotation) -> JsonFields:
    return JsonFields(
        {
            "name": annotation.name,
            "datasource": {"type": store.name, "uid": SOURCE},
            "enable": annotation.enabled,
            "hide": False,
            "iconColor": annotation.colour,
            **store.annotation(annotation),
        }
    )


MIN_VALUE = 1e-9
NEUTRAL = "transparent"
# Every y axis extends at least to the value listed for its unit. Grafana's default for a series of zeros is 100, which
# is 10,000% for a ratio.
SOFT_MAX = {
    Unit.PER_S: 1.0,
    Unit.SECONDS: 0.001,
    Unit.BYTES: 1024.0,
    Unit.BYTES_PER_S: 1024.0,
    Unit.RATIO: 0.01,
    Unit.COUNT: 1.0,
}


def value_steps(line: Line) -> list[tuple[float | None, str]]:
    """Return the steps that colour values: pairs of lower bound and colour, ascending. The first bound is None."""
    bounds = _bounds(line)
    if not _threshold(line).below:
        return [(None, GOOD), *((_first_beyond(line, bound), colour) for bound, colour in bounds)]
    return [*zip([None, *(bound for bound, _ in bounds)], [*(colour for _, colour in bounds), GOOD], strict=True)]


def line_steps(line: Line) -> list[tuple[float | None, str]]:
    """Return the steps that draw threshold lines, each in the colour of the alert that fires beyond it."""
    return [(None, GOOD), *_bounds(line)] if _threshold(line).below else value_steps(line)


def _threshold(line: Line) -> Threshold:
    return THRESHOLDS.get(line.signal_name, Threshold(None))


def _bounds(line: Line) -> list[tuple[float, str]]:
    """Return the bounds of a signal's severities, ascending, each with its severity's colour."""
    threshold = _threshold(line)
    bounds = ((threshold.warning, WARNING), (threshold.critical, CRITICAL))
    return [(bound, colour) for bound, colour in bounds[:: -1 if threshold.below else 1] if bound is not None]


def _first_beyond(line: Line, bound: float) -> float:
    """Return the lower bound of the step beyond `bound`: `bound + 1` for an item count, else `bound` itself.

    The result is at least MIN_VALUE, so that a value of 0 is not beyond a bound of 0.
    """
    counts_items = isinstance(line.signal.expression, Gauge) and line.signal.unit is Unit.COUNT
    return bound + 1 if counts_items else max(bound, MIN_VALUE)


def build_panel(store: Store, dashboard: Dashboard, panel: Panel, number: int, position: GridPosition) -> Any:
    """Return the SDK's builder for a panel; `number` is its id on the dashboard."""
    if isinstance(panel, TextPanel):
        builder = text.Panel().mode(TextMode.MARKDOWN).content(panel.text)
    else:
        builder = _query_panel(store, dashboard, panel)
    grid = model.GridPos(x=position.x, y=position.y, w=position.width, h=position.height)
    description = store.panel_description(panel) if panel.lines else panel.text
    return builder.id(number).title(store.panel_title(panel)).description(description).grid_pos(grid)


def _query_panel(store: Store, dashboard: Dashboard, panel: Panel) -> Any:
    queries = store.queries(panel, dashboard.tables)
    builder = _visualisation(store, panel, queries)
    builder = builder.datasource(data_source(store)).no_value(panel_model.no_value(panel))
    if not isinstance(panel, Heatmap):
        builder = builder.unit(panel.lines[0].signal.unit.value)
    if step := store.min_interval(panel):
        builder = builder.interval(step)
    for rename in _math_legends(panel, queries):
        builder = builder.with_transformation(rename)
    return builder.targets([store.target(query, ref_id(index)) for index, query in enumerate(queries)])


def _visualisation(store: Store, panel: Panel, queries: list[Query]) -> Any:
    if isinstance(panel, Heatmap):
        return _heatmap(panel)
    if isinstance(panel, WorstTable):
        return _worst_table(store, panel)
    if isinstance(panel, Stat):
        return _stat(panel, queries)
    if isinstance(panel, StateTimeline):
        return _state_timeline(panel)
    return _time_series(panel, queries)


def _time_series(panel: Panel, queries: list[Query]) -> Any:
    legend = common.VizLegendOptions().display_mode(kinds.LegendDisplayMode.TABLE)
    unit, low = panel.lines[0].signal.unit, panel.lines[0].signal.low_is_worse
    legend = legend.placement(kinds.LegendPlacement.BOTTOM).show_legend(True)
    legend = legend.calcs(["lastNotNull", "min" if low else "max"]).sort_by("Min" if low else "Max").sort_desc(not low)
    tooltip = common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI).sort(kinds.SortOrder.DESCENDING)
    builder = timeseries.Panel().legend(legend).tooltip(tooltip)
    builder = builder.line_width(1).fill_opacity(5).show_points(kinds.VisibilityMode.AUTO)
    builder = builder.axis_soft_min(0).axis_soft_max(SOFT_MAX[unit])
    if unit is Unit.RATIO:
        builder = builder.decimals(1)
    if low and panel.lines[0].signal.bounded:
        # A healthy value is 100%; left to itself, Grafana would extend the axis to 200%.
        builder = builder.max(1)
    visible = [index for index, query in enumerate(queries) if query.visible]
    for number, index in enumerate(visible):
        if len(visible) > 1:
            builder = builder.override_by_query(ref_id(index), [_colour(panel, number)])
    steps = line_steps(panel.lines[0])
    if len(steps) > 1 and (len(visible) == 1 or isinstance(panel, Spread)):
        dashed = common.GraphThresholdsStyleConfig().mode(kinds.GraphThresholdsStyleMode.DASHED)
        builder = builder.thresholds_style(dashed).thresholds(_thresholds(steps))
    return builder.color_scheme(sdk.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC))


def _math_legends(panel: Panel, queries: list[Query]) -> Iterator[Any]:
    """Yield transformations that name the series of math queries, which have no legends of their own.

    For example, `C {cluster="a", node="b"}` becomes "b". The new name consists of the values of the panel's labels and
    the value of the series' most specific node label. Only the first pattern that matches takes effect.
    """
    shared = [label for label in panel.labels if label in panel.lines[0].signal.labels]
    for index in (index for index, query in enumerate(queries) if query.form == "math" and query.visible):
        prefix = queries[index].legend.partition("$")[0]
        for narrowest in reversed(NODE_LABELS):
            labels = [*shared, narrowest]
            pattern = "".join(f'(?=.*\\b{label}="([^"]*)")' for label in labels)
            names = " ".join(f"${group}" for group in range(1, len(labels) + 1))
            options = {"regex": f"^{ref_id(index)} {pattern}.*$", "renamePattern": f"{prefix}{names}"}
            yield model.DataTransformerConfig(id_val="renameByRegex", options=options)
        # If a series has only one label, Grafana omits the label's name.
        options = {"regex": f"^{ref_id(index)} ([^{{]*)$", "renamePattern": f"{prefix}$1"}
        yield model.DataTransformerConfig(id_val="renameByRegex", options=options)


def _colour(panel: Panel, number: int) -> Any:
    """Return the colour of a query's lines: a fixed colour for a single line, or shades if there may be several."""
    value = {
        "mode": "fixed" if isinstance(panel, Spread) else "shades",
        "fixedColor": panel_model.PALETTE[number % len(panel_model.PALETTE)],
    }
    return model.DynamicConfigValue(id_val="color", value=value)


def _thresholds(steps: list[tuple[float | None, str]]) -> Any:
    thresholds = [model.Threshold(value=value, color=colour) for value, colour in steps]
    return sdk.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(thresholds)


def _stat(panel: Panel, queries: list[Query]) -> Any:
    latest = common.ReduceDataOptions().calcs(["lastNotNull"]).fields("").values(False)
    builder = stat.Panel().reduce_options(latest).graph_mode(kinds.BigValueGraphMode.AREA)
    builder = builder.text_mode(kinds.BigValueTextMode.VALUE_AND_NAME).justify_mode(kinds.BigValueJustifyMode.AUTO)
    steps = value_steps(panel.lines[0])
    is_coloured = len(steps) > 1 or any(query.colour for query in queries)
    colour_mode = kinds.BigValueColorMode.VALUE if is_coloured else kinds.BigValueColorMode.NONE
    for index, query in enumerate(queries):
        if query.colour:
            fixed = model.DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": query.colour})
            builder = builder.override_by_query(ref_id(index), [fixed])
    scheme = sdk.FieldColor().mode(model.FieldColorModeId.THRESHOLDS)
    return builder.color_mode(colour_mode).thresholds(_thresholds(steps)).color_scheme(scheme)


def _heatmap(panel: Panel) -> Any:
    colours = heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Viridis").reverse(True)
    colours = colours.scale(HeatmapColorScale.EXPONENTIAL).exponent(0.5).steps(64)
    axis = heatmap.YAxisConfig().unit(panel.lines[0].signal.unit.value).axis_placement(kinds.AxisPlacement.LEFT)
    builder = heatmap.Panel().calculate(False).color(colours).y_axis(axis).show_legend()
    # The y axis has the unit of the buckets; the cells are counts.
    return builder.cell_values(heatmap.CellValues().unit("short")).show_y_histogram().cell_gap(0).unit("short")


def _state_timeline(panel: Panel) -> Any:
    mapping = {
        "0": model.ValueMappingResult(text="no", color=panel_model.CRITICAL, index=0),
        "1": model.ValueMappingResult(text="yes", color=panel_model.GOOD, index=1),
        # Without any value, Grafana would show "Data does not have a time field" instead of the panel's own text.
        str(NO_STATE): model.ValueMappingResult(text=panel_model.no_value(panel), color=NEUTRAL, index=2),
    }
    builder = statetimeline.Panel().show_value(kinds.VisibilityMode.AUTO).merge_values(True).row_height(0.8)
    builder = builder.mappings([model.ValueMap(options=mapping)])
    # The mapping defines the colours: with threshold colours, Grafana would show "1+" instead of "yes".
    return builder.color_scheme(sdk.FieldColor().mode(model.FieldColorModeId.FIXED))


def _worst_table(store: Store, panel: Panel) -> Any:
    hidden = dict.fromkeys(["Time", "cluster", "dc", "rack", "le", "__name__"], True)
    order = {name: index for index, name in enumerate([*panel.labels, "node", "Value"])}
    columns = {"excludeByName": hidden, "indexByName": order, "renameByName": {"Value": panel.name}}
    builder = table.Panel().show_header(True)
    descending = not panel.lines[0].signal.low_is_worse
    builder = builder.sort_by([common.TableSortByFieldState().display_name(panel.name).desc(descending)])
    builder = builder.with_transformation(model.DataTransformerConfig(id_val="organize", options=columns))
    steps = value_steps(panel.lines[0])
    if len(steps) > 1:
        builder = builder.thresholds(_thresholds(steps)).override_by_name(
            panel.name, [model.DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-text"})]
        )
    return builder.override_by_name("node", [model.DynamicConfigValue(id_val="links", value=[_node_link(store)])])


def _node_link(store: Store) -> dict[str, object]:
    node_uid = uid(store, Dashboard("node", "Node", ""))
    keep = "${__url_time_range}&${datasource:queryparam}&${cluster:queryparam}"
    return {"title": "Show this node", "url": f"/d/{node_uid}?{keep}&var-node=${{__value.raw}}"}


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
    builder = builder.annotations([_annotation(store, annotation) for annotation in store.annotations()])
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

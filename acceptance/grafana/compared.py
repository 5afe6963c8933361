"""Builds a table that compares panel values with merged values for the same minutes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from acceptance.grafana.recorded import Recorded, Values
from acceptance.grafana.shown import Line, Panels
from collector.model.metric import ScrapeInterval
from collector.node.catalogue import CATALOGUE
from collector.node.selection import slowest_interval
from dashboards.expression import Quantile, metrics_of
from dashboards.grafana.build import Store, uid
from dashboards.grafana.definitions.all_dashboards import DASHBOARDS
from dashboards.grafana.panel_model import (
    Dashboard,
    Heatmap,
    Panel,
    Split,
    Spread,
    StateTimeline,
    TextPanel,
    WorstTable,
    ref_id,
)
from dashboards.grafana.panel_model import Line as Shown
from dashboards.promql import NODE_LABELS
from dashboards.signals.signal import Unit

TOLERANCE, OF_TAILS = 0.1, 0.35
# Window and step, in seconds, of a line in a Prometheus panel, keyed by the scrape interval of its slowest metric. If
# Prometheus scrapes every second, a window of two steps contains two samples, which span 1 s.
WINDOWS_S = {ScrapeInterval.TICK: (1.0, 1.0), ScrapeInterval.OFTEN: (120.0, 60.0), ScrapeInterval.SLOW: (240.0, 120.0)}
# In InfluxDB panels, a percentile covers a single reading; these are the times between readings, in seconds.
READINGS_S = {ScrapeInterval.TICK: 1.0, ScrapeInterval.OFTEN: 10.0, ScrapeInterval.SLOW: 60.0}
# All other values in InfluxDB panels are means over a step; these are the steps, in seconds.
STEPS_S = {ScrapeInterval.TICK: 4.0, ScrapeInterval.OFTEN: 20.0, ScrapeInterval.SLOW: 120.0}
# Differences up to this size, in the signal's unit, are ignored.
SMALL = {
    Unit.PER_S: 1.0,
    Unit.SECONDS: 0.001,
    Unit.BYTES: 1e6,
    Unit.BYTES_PER_S: 5e4,
    Unit.RATIO: 0.02,
    Unit.COUNT: 1.0,
}


@dataclass(frozen=True)
class Row:
    """A panel line: its merged value (None if it is not recorded), and the values that Grafana displays.

    shown  the displayed values, keyed by the version of the dashboards: "now", or "before" for the earlier revision.
    """

    store: str
    dashboard: str
    panel: str
    line: str
    unit: Unit
    tolerance: float
    merged: float | None
    shown: Mapping[str, Sequence[float]]

    def agrees(self, state: str) -> bool:
        """Return whether the mean of the displayed values matches the merged value, or either is missing."""
        values = self.shown.get(state)
        if self.merged is None or not values:
            return True
        off = abs(fmean(values) - self.merged)
        return off <= SMALL[self.unit] or off <= self.tolerance * abs(self.merged)


def rows(recorded: Recorded, store: Store, states: Mapping[str, Panels]) -> Iterator[Row]:
    """Yield a row for each line of each comparable panel: the values of its series with the highest merged value."""
    recorded = replace(recorded, by_node=store.name == "influxdb")
    for dashboard in store.dashboards(DASHBOARDS):
        number = 0
        for row in dashboard.rows:
            number += 1
            for panel in row.panels:
                number += 1
                if not isinstance(panel, TextPanel | Heatmap | WorstTable | StateTimeline):
                    yield from _of_panel(recorded, store, states, dashboard, number, panel)


def _of_panel(
    recorded: Recorded, store: Store, states: Mapping[str, Panels], dashboard: Dashboard, number: int, panel: Panel
) -> Iterator[Row]:
    visible = [index for index, query in enumerate(store.queries(panel, dashboard.tables)) if query.visible]
    # Only the second query of a spread panel is compared, because it combines all nodes.
    for index, line in zip(visible[1:] if isinstance(panel, Spread) else visible, panel.lines, strict=False):
        merged = recorded.mean(line.signal.expression, _by(panel, line), *_window_s(line, store))
        key = uid(store, dashboard), number, ref_id(index)
        value, shown = _chosen(merged, {state: panels.get(key, ()) for state, panels in states.items()})
        unit = line.signal.unit
        tolerance = OF_TAILS if unit is Unit.SECONDS else TOLERANCE
        yield Row(store.name, dashboard.name, panel.name, line.name, unit, tolerance, value, shown)


def _window_s(line: Shown, store: Store) -> tuple[float, float]:
    """Return a line's window and step in seconds, which depend on the store and on the line's slowest metric."""
    expression = line.signal.expression
    intervals = [slowest_interval(CATALOGUE[name]) for name in metrics_of(expression) if name in CATALOGUE]
    slowest = max(intervals, key=lambda scrape_interval: scrape_interval.value, default=ScrapeInterval.TICK)
    if store.name == "influxdb":
        step_s = (READINGS_S if isinstance(expression, Quantile) else STEPS_S)[slowest]
        return step_s, step_s
    return WINDOWS_S[slowest]


def _by(panel: Panel, line: Shown) -> tuple[str, ...]:
    labels = ("cluster",) if panel.split is Split.CLUSTER or isinstance(panel, Spread) else NODE_LABELS
    return (*labels, *(label for label in panel.labels if label in line.signal.labels))


def _chosen(merged: Values, lines: Mapping[str, Sequence[Line]]) -> tuple[float | None, dict[str, Sequence[float]]]:
    """Find the series with the highest merged value, preferably among those that the last state displays.

    A state is a version of the dashboards. Return the series' merged value (None if the signal is not recorded), and
    its displayed values keyed by state.
    """
    *_, last = lines.values()
    by_labels = {state: {line.labels: line.values for line in state_lines} for state, state_lines in lines.items()}
    there = {line.labels for line in last}
    known = {tuple(sorted(labels)): value for labels, value in merged.items()}
    known = {labels: value for labels, value in known.items() if labels in there} or known
    if not known:
        # The signal is not recorded, so use the first displayed series, if any.
        first = min(there, default=None)
        return None, {state: values.get(first, ()) for state, values in by_labels.items()} if first else {}
    labels = max(known, key=lambda candidate: known[candidate])
    return known[labels], {state: values.get(labels, ()) for state, values in by_labels.items()}


def table(compared_rows: Sequence[Row], states: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a Markdown table; DIFFERS marks displayed values that do not match the merged one."""
    columns = ["store", "dashboard", "panel", "merge", *(f"{state}: mean (lowest to highest)" for state in states)]
    yield " | ".join(columns)
    yield " | ".join(["---"] * len(columns))
    for row in compared_rows:
        cells = [row.store, row.dashboard, f"{row.panel} {row.line}".strip()]
        cells.append("not recorded" if row.merged is None else _number(row.merged, row.unit))
        for state in states:
            values = row.shown.get(state)
            text = "nothing"
            if values:
                low, high = _number(min(values), row.unit), _number(max(values), row.unit)
                text = f"{_number(fmean(values), row.unit)} ({low} to {high})"
            cells.append(text if row.agrees(state) else f"{text} DIFFERS")
        yield " | ".join(cells)


def _number(value: float, unit: Unit) -> str:
    if unit is Unit.RATIO:
        return f"{100 * value:.1f}%"
    if unit is Unit.SECONDS:
        return f"{1000 * value:.4g} ms"
    if unit in (Unit.BYTES, Unit.BYTES_PER_S):
        return f"{value / 1e6:.4g} MB"
    return f"{value:.4g}"

"""The agent dashboard: ticks, sources, sinks, the journal, and the agents' cost."""

from dashboards.grafana.panel_model import Dashboard, Heatmap, Row, Split, Stat, StateTimeline, TimeSeries, lines

SOURCE, SINK = ("source",), ("sink",)

DASHBOARD = Dashboard(
    "agent",
    "casstat agents",
    "Health of the casstat agents. Shows missed ticks, failing sources and sinks, and the agents' resource usage.",
    (
        Row(
            "Ticks",
            (
                Stat(lines("ticks"), "Ticks per second", split=Split.CLUSTER, width=6),
                TimeSeries(lines("ticks_missed"), width=9),
                TimeSeries(lines("tick_late_p99"), width=9),
                Heatmap(lines("tick_late_p99"), "Tick lateness distribution", width=12),
                StateTimeline(lines("node_answers"), split=Split.NODE, width=12),
            ),
        ),
        Row(
            "Sources",
            (
                StateTimeline(lines("source_up"), split=Split.NODE, labels=SOURCE, width=12, height=9),
                TimeSeries(lines("source_errors"), labels=SOURCE, top=True, width=12, height=9),
                TimeSeries(lines("source_cpu"), labels=SOURCE, top=True, width=12),
                TimeSeries(lines("source_wall"), labels=SOURCE, top=True, width=12),
            ),
        ),
        Row(
            "Sinks",
            (
                StateTimeline(lines("sink_up"), split=Split.NODE, labels=SINK),
                TimeSeries(lines("sink_lag"), labels=SINK),
                TimeSeries(lines("sink_points"), labels=SINK),
                TimeSeries(lines("sink_failures"), labels=SINK),
                TimeSeries(lines("sink_refused"), labels=SINK),
                TimeSeries(lines("sink_lost"), labels=SINK),
            ),
        ),
        Row(
            "Journal and cost",
            (
                TimeSeries(lines("journal_bytes")),
                TimeSeries(lines("journal_lost")),
                TimeSeries(lines("journal_removed")),
                TimeSeries(lines("agent_cpu")),
                TimeSeries(lines("agent_memory")),
                TimeSeries(lines("agent_files")),
                TimeSeries(lines("series_left")),
                TimeSeries(lines("agent_events"), labels=("kind",)),
            ),
        ),
    ),
)

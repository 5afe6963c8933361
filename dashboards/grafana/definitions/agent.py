"""The agent dashboard: ticks, sources, sinks, the journal, and the agents' cost."""

from dashboards.grafana.panel_model import Dashboard, Heatmap, Row, Split, Stat, StateTimeline, graphs, lines

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
                *graphs("ticks_missed", "tick_late_p99", width=9),
                Heatmap(lines("tick_late_p99"), "Tick lateness distribution", width=12),
                StateTimeline(lines("node_answers"), split=Split.NODE, width=12),
            ),
        ),
        Row(
            "Sources",
            (
                StateTimeline(lines("source_up"), split=Split.NODE, labels=SOURCE, width=12, height=9),
                *graphs("source_errors", labels=SOURCE, top=True, width=12, height=9),
                *graphs("source_cpu", "source_wall", labels=SOURCE, top=True, width=12),
            ),
        ),
        Row(
            "Sinks",
            (
                StateTimeline(lines("sink_up"), split=Split.NODE, labels=SINK),
                *graphs("sink_lag", "sink_points", "sink_failures", labels=SINK),
                *graphs("sink_refused", "sink_lost", labels=SINK),
            ),
        ),
        Row(
            "Journal and cost",
            (
                *graphs("journal_bytes", "journal_lost", "journal_removed"),
                *graphs("agent_cpu", "agent_memory", "agent_files"),
                *graphs("series_left"),
                *graphs("agent_events", labels=("kind",)),
            ),
        ),
    ),
)

"""casstat itself: whether what the other boards show is whole."""

from dashboards.grafana.panel_model import Dashboard, Graph, Heatmap, Number, Row, Split, States, of

SOURCE, SINK = ("source",), ("sink",)

BOARD = Dashboard(
    "agent",
    "casstat itself",
    "casstat's agents. Whether what the other boards show is whole, and what it costs the nodes.",
    (
        Row(
            "Ticks",
            (
                Number(of("ticks"), "Ticks per second", split=Split.CLUSTER, width=6),
                Graph(of("ticks_missed"), width=9),
                Graph(of("tick_late_p99"), width=9),
                Heatmap(of("tick_late_p99"), "Tick lateness, distribution", width=12),
                States(of("node_answers"), split=Split.NODE, width=12),
            ),
        ),
        Row(
            "Sources",
            (
                States(of("source_up"), split=Split.NODE, each=SOURCE, width=12, height=9),
                Graph(of("source_errors"), each=SOURCE, top=True, width=12, height=9),
                Graph(of("source_cpu"), each=SOURCE, top=True, width=12),
                Graph(of("source_wall"), each=SOURCE, top=True, width=12),
            ),
        ),
        Row(
            "Sinks",
            (
                States(of("sink_up"), split=Split.NODE, each=SINK),
                Graph(of("sink_lag"), each=SINK),
                Graph(of("sink_points"), each=SINK),
                Graph(of("sink_failures"), each=SINK),
                Graph(of("sink_refused"), each=SINK),
                Graph(of("sink_lost"), each=SINK),
            ),
        ),
        Row(
            "Journal and cost",
            (
                Graph(of("journal_bytes")),
                Graph(of("journal_lost")),
                Graph(of("journal_removed")),
                Graph(of("agent_cpu")),
                Graph(of("agent_memory")),
                Graph(of("agent_files")),
                Graph(of("series_left")),
                Graph(of("agent_events"), each=("kind",)),
            ),
        ),
    ),
)

"""Messages between nodes: dropped messages, network latency, hints, streaming and read repair."""

from collector.model.mbean import METRICS, counter, histogram, total
from collector.model.metric import rate_column

_STORAGE = METRICS + "type=Storage,name="
_HINTS = METRICS + "type=HintsService,name="
_STREAMS = METRICS + "type=Streaming,name="
_REPAIR = METRICS + "type=ReadRepair,name="

BEANS = (
    counter(
        "cassandra_messages_dropped_total",
        "Number of messages dropped because they timed out.",
        METRICS + "type=DroppedMessage,scope={message},name=Dropped",
        columns=(
            rate_column("dropped_reads_per_s", "DrpRd", "Reads dropped per second because they timed out", "READ_REQ"),
            rate_column(
                "dropped_mutations_per_s",
                "DrpMut",
                "Mutations dropped per second because they timed out",
                "MUTATION_REQ",
            ),
        ),
    ),
    histogram(
        "cassandra_message_latency_seconds",
        "Time between another node sending a message and this node receiving it, by their clocks, in seconds.",
        METRICS + "type=Messaging,name=CrossNodeLatency",
    ),
    counter(
        "cassandra_hints_total",
        "Number of hints written for nodes that are down or did not respond.",
        _STORAGE + "TotalHints",
        columns=(
            rate_column(
                "hints_per_s", "Hints/s", "Hints written per second for nodes that are down or did not respond"
            ),
        ),
    ),
    total("cassandra_hints_in_progress", "Number of hints being written.", _STORAGE + "TotalHintsInProgress", "Count"),
    counter("cassandra_hints_succeeded_total", "Number of hints delivered.", _HINTS + "HintsSucceeded"),
    counter("cassandra_hints_failed_total", "Number of hints whose delivery failed.", _HINTS + "HintsFailed"),
    counter(
        "cassandra_hints_timed_out_total", "Number of hints that timed out during delivery.", _HINTS + "HintsTimedOut"
    ),
    counter(
        "cassandra_streaming_in_bytes_total",
        "Number of bytes received by streaming.",
        _STREAMS + "TotalIncomingBytes",
        unit="bytes",
    ),
    counter(
        "cassandra_streaming_out_bytes_total",
        "Number of bytes sent by streaming.",
        _STREAMS + "TotalOutgoingBytes",
        unit="bytes",
    ),
    total(
        "cassandra_streams_active", "Number of active outbound streams.", _STREAMS + "ActiveOutboundStreams", "Count"
    ),
    counter("cassandra_read_repairs_attempted_total", "Number of attempted read repairs.", _REPAIR + "Attempted"),
    counter(
        "cassandra_read_repairs_blocking_total",
        "Number of reads that waited for a read repair.",
        _REPAIR + "RepairedBlocking",
    ),
    counter(
        "cassandra_read_repairs_background_total",
        "Number of read repairs completed after the response to the client.",
        _REPAIR + "RepairedBackground",
    ),
)

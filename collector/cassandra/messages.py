"""Between nodes: messages dropped, hints, streams, read repair and the network's latency."""

from collector.jolokia.mbean import METRICS, counter, gauge, histogram
from collector.model.metric import Aggregation, WideColumn

_STORAGE = METRICS + "type=Storage,name="
_HINTS = METRICS + "type=HintsService,name="
_STREAMS = METRICS + "type=Streaming,name="
_REPAIR = METRICS + "type=ReadRepair,name="

BEANS = (
    counter(
        "cassandra_messages_dropped_total",
        "Messages given up because they were too old.",
        METRICS + "type=DroppedMessage,scope={message},name=Dropped",
        columns=(
            WideColumn("dropped_reads_per_s", "DrpRd", ("READ_REQ",), digits=1),
            WideColumn("dropped_mutations_per_s", "DrpMut", ("MUTATION_REQ",), digits=1),
        ),
    ),
    histogram(
        "cassandra_message_latency_seconds",
        "From the sending of a message on one node to its arrival here, by the two nodes' clocks.",
        METRICS + "type=Messaging,name=CrossNodeLatency",
    ),
    counter(
        "cassandra_hints_total",
        "Hints written for nodes that are down.",
        _STORAGE + "TotalHints",
        columns=(WideColumn("hints_per_s", "Hints/s", digits=1),),
    ),
    gauge(
        "cassandra_hints_in_progress",
        "Hints being written.",
        _STORAGE + "TotalHintsInProgress",
        "Count",
        across=Aggregation.SUM,
    ),
    counter("cassandra_hints_succeeded_total", "Hints delivered.", _HINTS + "HintsSucceeded"),
    counter("cassandra_hints_failed_total", "Hints whose delivery failed.", _HINTS + "HintsFailed"),
    counter("cassandra_hints_timed_out_total", "Hints whose delivery timed out.", _HINTS + "HintsTimedOut"),
    counter(
        "cassandra_streaming_in_bytes_total",
        "Bytes streamed in.",
        _STREAMS + "TotalIncomingBytes",
        unit="bytes",
    ),
    counter(
        "cassandra_streaming_out_bytes_total",
        "Bytes streamed out.",
        _STREAMS + "TotalOutgoingBytes",
        unit="bytes",
    ),
    gauge(
        "cassandra_streams_active",
        "Outbound streams.",
        _STREAMS + "ActiveOutboundStreams",
        "Count",
        across=Aggregation.SUM,
    ),
    counter(
        "cassandra_read_repairs_attempted_total",
        "Read repairs attempted.",
        _REPAIR + "Attempted",
    ),
    counter(
        "cassandra_read_repairs_blocking_total",
        "Reads that waited for a repair.",
        _REPAIR + "RepairedBlocking",
    ),
    counter(
        "cassandra_read_repairs_background_total",
        "Repairs done after the read had answered.",
        _REPAIR + "RepairedBackground",
    ),
)

"""Overload: queues, rejected and dropped work, hints."""

from dashboards.expression import Gauge, Quantile, Rate, where
from dashboards.signals.signal import Signal, Unit

NATIVE = where(path="transport", pool="Native-Transport-Requests")
FLUSH = where(path="internal", pool="MemtableFlushWriter")
SINCE_4_1 = "Absent before Cassandra 4.1."
STREAMED = "Absent until something was streamed."

SIGNALS = (
    Signal(
        "dropped",
        "Dropped messages",
        Rate("cassandra_messages_dropped_total"),
        Unit.PER_S,
        "Messages that waited longer than anybody waits for their answer: the node is overloaded.",
        ("message",),
    ),
    Signal(
        "pools_pending",
        "Pending tasks",
        Gauge("cassandra_pool_pending"),
        Unit.COUNT,
        "Tasks in the queues of the thread pools: a queue that stays long is where the node is slow.",
        ("pool",),
    ),
    Signal(
        "pools_active",
        "Active tasks",
        Gauge("cassandra_pool_active"),
        Unit.COUNT,
        "Tasks that threads of the pools work on.",
        ("pool",),
    ),
    Signal(
        "requests_pending",
        "Pending native transport requests",
        Gauge("cassandra_pool_pending", NATIVE),
        Unit.COUNT,
        "Requests of clients that no thread has taken up yet.",
    ),
    Signal(
        "reads_pending",
        "Pending reads",
        Gauge("cassandra_pool_pending", where(path="request", pool="ReadStage")),
        Unit.COUNT,
        "Reads of this node's own data that no thread has taken up yet.",
    ),
    Signal(
        "mutations_pending",
        "Pending mutations",
        Gauge("cassandra_pool_pending", where(path="request", pool="MutationStage")),
        Unit.COUNT,
        "Writes of this node's own data that no thread has taken up yet.",
    ),
    Signal(
        "pools_blocked",
        "Blocked tasks",
        Gauge("cassandra_pool_blocked"),
        Unit.COUNT,
        "Tasks for which there is no room in a queue: whoever hands them over waits.",
        ("pool",),
    ),
    Signal(
        "pools_blocking",
        "Tasks blocked per second",
        Rate("cassandra_pool_blocked_total"),
        Unit.PER_S,
        "Tasks for which there was no room in a queue when they came.",
        ("pool",),
    ),
    Signal(
        "flushes_pending",
        "Pending flushes",
        Gauge("cassandra_pool_pending", FLUSH),
        Unit.COUNT,
        "Memtables that wait for one of the flush writers: writes stop when memory is full.",
    ),
    Signal(
        "pools_oldest",
        "Oldest pending task",
        Gauge("cassandra_pool_oldest_task_seconds"),
        Unit.SECONDS,
        "How long the task at the head of a pool's queue has waited.",
        ("pool",),
        SINCE_4_1,
    ),
    Signal(
        "connection_pauses",
        "Pauses of client connections",
        Rate("cassandra_native_pauses_total"),
        Unit.PER_S,
        "How often the node stopped reading from a client connection, since too many bytes of requests were in flight: "
        "clients wait.",
        absent=SINCE_4_1,
    ),
    Signal(
        "native_discarded",
        "Discarded requests",
        Rate("cassandra_native_discarded_total"),
        Unit.PER_S,
        "Requests of clients that the node discarded under overload, without a word on them.",
    ),
    Signal(
        "hints",
        "Hints written",
        Rate("cassandra_hints_total"),
        Unit.PER_S,
        "Writes kept for replicas that did not take them: a node is down, or too slow.",
    ),
    Signal(
        "hints_failed",
        "Failed hints",
        Rate("cassandra_hints_failed_total"),
        Unit.PER_S,
        "Hints whose delivery failed: replicas stay behind until they are repaired.",
        absent="Absent until a hint was to be delivered.",
    ),
    Signal(
        "read_repairs",
        "Blocking read repairs",
        Rate("cassandra_read_repairs_blocking_total"),
        Unit.PER_S,
        "Reads for which replicas differed, and the older ones were mended before the answer.",
    ),
    Signal(
        "message_latency_p99",
        "Inter-node message latency, p99",
        Quantile(0.99, "cassandra_message_latency_seconds"),
        Unit.SECONDS,
        "From the sending of a message to its arrival, by two nodes' clocks: clocks that differ show here too.",
        absent="Absent on a cluster of one node, and while no messages are sent.",
    ),
    Signal(
        "streams_in",
        "Streamed in",
        Rate("cassandra_streaming_in_bytes_total"),
        Unit.BYTES_PER_S,
        "Data that other nodes send: a repair, a bootstrap, a rebuild.",
        absent=STREAMED,
    ),
    Signal(
        "streams_out",
        "Streamed out",
        Rate("cassandra_streaming_out_bytes_total"),
        Unit.BYTES_PER_S,
        "Data that is sent to other nodes: a repair, a bootstrap, a rebuild.",
        absent=STREAMED,
    ),
    Signal(
        "exceptions",
        "Uncaught exceptions",
        Rate("cassandra_exceptions_total"),
        Unit.PER_S,
        "Faults of Cassandra, or of the disk under it: the log tells which.",
    ),
)

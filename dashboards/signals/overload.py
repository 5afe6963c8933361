"""Signals for overload: queues, rejected and dropped work, hints, read repairs, exceptions, inter-node traffic."""

from dashboards.expression import Gauge, Quantile, Rate, where
from dashboards.signals.signal import Signal, Unit

NATIVE = where(path="transport", pool="Native-Transport-Requests")
FLUSH = where(path="internal", pool="MemtableFlushWriter")
SINCE_4_1 = "Absent before Cassandra 4.1."
STREAMED = "Absent until the first stream."

SIGNALS = (
    Signal(
        "dropped",
        "Dropped messages",
        Rate("cassandra_messages_dropped_total"),
        Unit.PER_S,
        "Messages that the node discarded because they had waited longer than their timeout: a sign of overload.",
        ("message",),
    ),
    Signal(
        "pools_pending",
        "Pending tasks",
        Gauge("cassandra_pool_pending"),
        Unit.COUNT,
        "Tasks queued in the thread pools. A queue that stays long shows where the node is slow.",
        ("pool",),
    ),
    Signal(
        "pools_active",
        "Active tasks",
        Gauge("cassandra_pool_active"),
        Unit.COUNT,
        "Tasks that the pools' threads are executing.",
        ("pool",),
    ),
    Signal(
        "requests_pending",
        "Pending native transport requests",
        Gauge("cassandra_pool_pending", NATIVE),
        Unit.COUNT,
        "Client requests that are waiting for a thread.",
    ),
    Signal(
        "reads_pending",
        "Pending reads",
        Gauge("cassandra_pool_pending", where(path="request", pool="ReadStage")),
        Unit.COUNT,
        "Local reads that are waiting for a thread.",
    ),
    Signal(
        "mutations_pending",
        "Pending mutations",
        Gauge("cassandra_pool_pending", where(path="request", pool="MutationStage")),
        Unit.COUNT,
        "Local writes that are waiting for a thread.",
    ),
    Signal(
        "pools_blocked",
        "Blocked tasks",
        Gauge("cassandra_pool_blocked"),
        Unit.COUNT,
        "Tasks that wait to enter a full queue; the threads that submit them are blocked.",
        ("pool",),
    ),
    Signal(
        "pools_blocking",
        "Blocked tasks per second",
        Rate("cassandra_pool_blocked_total"),
        Unit.PER_S,
        "Tasks per second that encountered a full queue.",
        ("pool",),
    ),
    Signal(
        "flushes_pending",
        "Pending flushes",
        Gauge("cassandra_pool_pending", FLUSH),
        Unit.COUNT,
        "Memtables that are waiting for a flush writer. Writes stall when memtable memory runs out.",
    ),
    Signal(
        "pools_oldest",
        "Oldest pending task",
        Gauge("cassandra_pool_oldest_task_seconds"),
        Unit.SECONDS,
        "Waiting time of the first task in a pool's queue.",
        ("pool",),
        SINCE_4_1,
    ),
    Signal(
        "connection_pauses",
        "Client connection pauses",
        Rate("cassandra_native_pauses_total"),
        Unit.PER_S,
        "Times per second that the node stopped reading from a client connection because the request bytes in flight "
        "or the request rate reached a limit. The clients wait.",
        absent=SINCE_4_1,
    ),
    Signal(
        "native_discarded",
        "Discarded requests",
        Rate("cassandra_native_discarded_total"),
        Unit.PER_S,
        "Client requests that the node discarded because it was overloaded. The clients receive timeouts or "
        "`OverloadedException`.",
    ),
    Signal(
        "hints",
        "Hints written",
        Rate("cassandra_hints_total"),
        Unit.PER_S,
        "Hints stored for replicas that did not acknowledge a write because they were down or too slow.",
    ),
    Signal(
        "hints_failed",
        "Failed hints",
        Rate("cassandra_hints_failed_total"),
        Unit.PER_S,
        "Hints whose delivery failed. The replicas lack these writes until a later delivery or a repair.",
        absent="Absent until the node has tried to deliver a hint.",
    ),
    Signal(
        "read_repairs",
        "Blocking read repairs",
        Rate("cassandra_read_repairs_blocking_total"),
        Unit.PER_S,
        "Reads that found replicas with different data and repaired them before responding.",
    ),
    Signal(
        "message_latency_p99",
        "Inter-node message latency, p99",
        Quantile(0.99, "cassandra_message_latency_seconds"),
        Unit.SECONDS,
        "Time from sending a message to receiving it, measured with both nodes' clocks. Clock differences distort it.",
        absent="Absent while the node receives no messages from other nodes.",
    ),
    Signal(
        "streams_in",
        "Incoming streams",
        Rate("cassandra_streaming_in_bytes_total"),
        Unit.BYTES_PER_S,
        "Data received from other nodes for a repair, bootstrap or rebuild.",
        absent=STREAMED,
    ),
    Signal(
        "streams_out",
        "Outgoing streams",
        Rate("cassandra_streaming_out_bytes_total"),
        Unit.BYTES_PER_S,
        "Data sent to other nodes for a repair, bootstrap or rebuild.",
        absent=STREAMED,
    ),
    Signal(
        "exceptions",
        "Uncaught exceptions",
        Rate("cassandra_exceptions_total"),
        Unit.PER_S,
        "Exceptions that Cassandra did not handle, often caused by a bug or a failing disk. The log contains them.",
    ),
)

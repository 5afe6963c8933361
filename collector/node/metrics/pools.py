"""Thread pools: active, pending, blocked and completed tasks, and the queue time of the oldest pending one."""

from collector.model.mbean import METRICS, counter, gauge, total
from collector.model.metric import Aggregation, WideColumn

_BEAN = METRICS + "type=ThreadPools,path={path},scope={pool},name="

BEANS = (
    total(
        "cassandra_pool_active",
        "Number of active tasks.",
        _BEAN + "ActiveTasks",
        columns=(
            WideColumn("read_stage_active", "RdAct", "Active tasks of the read stage", ("request", "ReadStage")),
            WideColumn(
                "mutation_stage_active", "MutAct", "Active tasks of the mutation stage", ("request", "MutationStage")
            ),
        ),
    ),
    total(
        "cassandra_pool_pending",
        "Number of pending tasks.",
        _BEAN + "PendingTasks",
        columns=(
            WideColumn("read_stage_pending", "RdPnd", "Pending tasks of the read stage", ("request", "ReadStage")),
            WideColumn(
                "mutation_stage_pending", "MutPnd", "Pending tasks of the mutation stage", ("request", "MutationStage")
            ),
            WideColumn(
                "native_transport_pending",
                "NtrPnd",
                "Pending client requests",
                ("transport", "Native-Transport-Requests"),
            ),
            WideColumn("flush_pending", "FluPnd", "Pending memtable flushes", ("internal", "MemtableFlushWriter")),
        ),
    ),
    total(
        "cassandra_pool_blocked",
        "Number of tasks that are blocked because the queue is full.",
        _BEAN + "CurrentlyBlockedTasks",
        "Count",
        columns=(
            WideColumn(
                "native_transport_blocked",
                "NtrBlk",
                "Client requests that are blocked because the queue is full",
                ("transport", "Native-Transport-Requests"),
            ),
        ),
    ),
    counter("cassandra_pool_completed_total", "Number of completed tasks.", _BEAN + "CompletedTasks", "Value"),
    counter(
        "cassandra_pool_blocked_total",
        "Number of tasks that were blocked because the queue was full.",
        _BEAN + "TotalBlockedTasks",
    ),
    gauge(
        "cassandra_pool_oldest_task_seconds",
        "Queue time of the oldest pending task, in seconds (4.1 and later).",
        _BEAN + "OldestTaskQueueTime",
        unit="seconds",
        scale=1e-9,
        across=Aggregation.MAX,
        # Cassandra's coarse clock may lag behind the start of the wait.
        many=lambda value: [((), max(value, 0))],
    ),
)

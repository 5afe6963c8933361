"""Client requests that the node coordinates, by operation."""

from collector.jolokia.mbean import METRICS, counter, histogram
from collector.model.metric import WideColumn

OPERATIONS = {"operation": ("Read", "Write", "RangeSlice", "CASRead", "CASWrite", "ViewWrite")}
READ_WRITE = {"operation": ("Read", "Write")}
_BEAN = METRICS + "type=ClientRequest,scope={operation},name="

BEANS = (
    counter(
        "cassandra_client_requests_total",
        "Number of client requests coordinated by this node.",
        _BEAN + "Latency",
        only=OPERATIONS,
    ),
    counter(
        "cassandra_client_request_seconds_total",
        "Time spent on client requests coordinated by this node, in seconds.",
        _BEAN + "TotalLatency",
        unit="seconds",
        scale=1e-6,
        only=OPERATIONS,
    ),
    histogram(
        "cassandra_client_request_duration_seconds",
        "Duration of client requests coordinated by this node, in seconds.",
        _BEAN + "Latency",
        count="cassandra_client_requests_total",
        total="cassandra_client_request_seconds_total",
        only=OPERATIONS,
    ),
    counter(
        "cassandra_client_request_timeouts_total",
        "Number of client requests that timed out on the coordinator.",
        _BEAN + "Timeouts",
        only=OPERATIONS,
        columns=(
            WideColumn(
                "read_timeouts_per_s",
                "RdTmo",
                "Reads per second that timed out on the coordinator",
                ("Read",),
                digits=1,
            ),
            WideColumn(
                "write_timeouts_per_s",
                "WrTmo",
                "Writes per second that timed out on the coordinator",
                ("Write",),
                digits=1,
            ),
        ),
    ),
    counter(
        "cassandra_client_request_unavailables_total",
        "Number of client requests rejected because too few replicas were up.",
        _BEAN + "Unavailables",
        only=OPERATIONS,
    ),
    counter(
        "cassandra_client_request_failures_total",
        "Number of client requests that failed on a replica.",
        _BEAN + "Failures",
        only=OPERATIONS,
    ),
    counter(
        "cassandra_client_request_aborts_total",
        "Number of client requests aborted by a guardrail or limit (4.1 and later).",
        _BEAN + "Aborts",
        only=OPERATIONS,
    ),
    counter(
        "cassandra_client_requests_local_total",
        "Number of client requests for which this node is a replica (4.1 and later).",
        _BEAN + "LocalRequests",
        only=READ_WRITE,
    ),
    counter(
        "cassandra_client_requests_remote_total",
        "Number of client requests for which this node is not a replica (4.1 and later).",
        _BEAN + "RemoteRequests",
        only=READ_WRITE,
    ),
)

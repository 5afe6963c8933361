"""Client requests that the node coordinates, by operation.

What Cassandra counts, as measured on 5.0.8 with known numbers of statements (tests/real/test_truth.py):

- A statement is one or more operations: `IN` with three partition keys is three reads, and each page of a scan, of an
  index query or of a `count(*)` is a range read.
- Counter updates and batches, logged or not, are one write each.
- A serial read is a CASRead and also a Read, with its errors.
- A conditional write is a CASWrite, never a Write. With Paxos v1, the default, its own read is also a Read; with v2, it
  is not.
- A ViewWrite is a write that a node sends to a view's replicas because of a Write.
- A failed request counts as an operation, too.
"""

from dataclasses import dataclass
from functools import partial

from collector.model.mbean import METRICS, counter, gauge, histogram
from collector.model.metric import Aggregation, ScrapeInterval, rate_column


@dataclass(frozen=True)
class Operation:
    """A kind of operation.

    scope     its name in the metrics of coordinators (the label `operation`).
    local     its name in the metrics of keyspaces and tables; "" if they do not have it.
    word      the beginning of the names of its columns, as in `range_read_p99_ms` and `range_reads_per_s`.
    title     its name in texts, in the plural.
    short     the beginning of its headers.
    is_usual  whether it is always shown; others are shown where they occur.
    adds      whether it counts in the total, because none of the others that do contains it.
    """

    scope: str
    local: str
    word: str
    title: str
    short: str
    is_usual: bool = False
    adds: bool = True

    @property
    def plural(self) -> str:
        """The name of the column with the number of these operations."""
        return f"{self.word}s"


OPERATIONS = (
    Operation("Read", "Read", "read", "reads", "Rd", is_usual=True),
    Operation("Write", "Write", "write", "writes", "Wrt", is_usual=True),
    Operation("RangeSlice", "Range", "range_read", "range reads", "Rng"),
    Operation("CASRead", "", "cas_read", "serial reads", "CasRd", adds=False),
    Operation("CASWrite", "", "cas_write", "conditional writes", "CasWr", adds=False),
    Operation("ViewWrite", "", "view_write", "view writes", "View", adds=False),
    # Cassandra 6.0 and later.
    Operation("AccordRead", "", "accord_read", "Accord reads", "AccRd"),
    Operation("AccordWrite", "", "accord_write", "Accord writes", "AccWr"),
)
"""All kinds of operations, in the order of output."""
LEVELS = ("ANY", "ONE", "TWO", "THREE", "QUORUM", "ALL", "LOCAL_QUORUM", "EACH_QUORUM", "LOCAL_ONE")
"""The consistency levels, except those of conditional operations."""
CONDITIONAL_WRITE = "CASWrite"
COUNTED = tuple(operation for operation in OPERATIONS if operation.adds or operation.scope == CONDITIONAL_WRITE)
"""The operations whose latencies and errors together are those of all: the others are parts of reads and writes.

With Paxos v1, the reads of conditional writes are among the reads.
"""
PAXOS_V2 = gauge(
    "cassandra_paxos_v2",
    "1 if Paxos v2 is used, with which reads of conditional writes are no client requests; 0 for v1 (4.1 and later).",
    "org.apache.cassandra.db:type=StorageProxy",
    "PaxosVariant",
    across=Aggregation.MIN,
    # There are variants of both, such as v2_without_linearizable_reads.
    many=lambda variant: [((), {"v1": 0, "v2": 1}[variant[:2]])],
)

SCOPES = {"operation": tuple(operation.scope for operation in OPERATIONS)}
_CONDITIONAL = {"operation": ("CASRead", "CASWrite")}
READ_WRITE = {"operation": ("Read", "Write")}
_BEAN = METRICS + "type=ClientRequest,scope={operation},name="
REQUESTS = "cassandra_client_requests_total"
_SECONDS = "cassandra_client_request_seconds_total"

ERRORS = {
    "timeouts": "cassandra_client_request_timeouts_total",
    "unavailables": "cassandra_client_request_unavailables_total",
    "failures": "cassandra_client_request_failures_total",
}
"""The metrics that count failed requests, by the end of the names of their columns."""

_of_all = partial(counter, only=SCOPES)
_of_reads_and_writes = partial(counter, only=READ_WRITE)
_of_conditional = partial(counter, only=_CONDITIONAL)

BEANS = (
    counter(
        "cassandra_requests_by_consistency_total",
        "Number of client requests coordinated by this node, by consistency level.",
        METRICS + "type=ClientRequest,scope={operation}-{level},name=Latency",
        scrape_interval=ScrapeInterval.OFTEN,
        only={**READ_WRITE, "level": LEVELS},
    ),
    _of_all(REQUESTS, "Number of client requests coordinated by this node.", _BEAN + "Latency"),
    _of_all(
        _SECONDS,
        "Time spent on client requests coordinated by this node, in seconds.",
        _BEAN + "TotalLatency",
        unit="seconds",
        scale=1e-6,
    ),
    histogram(
        "cassandra_client_request_duration_seconds",
        "Duration of client requests coordinated by this node, in seconds.",
        _BEAN + "Latency",
        count=REQUESTS,
        total=_SECONDS,
        only=SCOPES,
    ),
    _of_all(
        ERRORS["timeouts"],
        "Number of client requests that timed out on the coordinator.",
        _BEAN + "Timeouts",
        columns=(
            rate_column("read_timeouts_per_s", "RdTmo", "Reads per second that timed out on the coordinator", "Read"),
            rate_column(
                "write_timeouts_per_s", "WrTmo", "Writes per second that timed out on the coordinator", "Write"
            ),
        ),
    ),
    _of_all(
        ERRORS["unavailables"],
        "Number of client requests rejected because too few replicas were up.",
        _BEAN + "Unavailables",
    ),
    _of_all(ERRORS["failures"], "Number of client requests that failed on a replica.", _BEAN + "Failures"),
    _of_all(
        "cassandra_client_request_aborts_total",
        "Number of client requests aborted by a guardrail or limit (4.1 and later).",
        _BEAN + "Aborts",
    ),
    _of_reads_and_writes(
        "cassandra_client_requests_local_total",
        "Number of client requests for which this node is a replica (4.1 and later).",
        _BEAN + "LocalRequests",
    ),
    _of_reads_and_writes(
        "cassandra_client_requests_remote_total",
        "Number of client requests for which this node is not a replica (4.1 and later).",
        _BEAN + "RemoteRequests",
    ),
    counter(
        "cassandra_client_request_conditions_not_met_total",
        "Number of conditional writes whose condition was not met.",
        _BEAN + "ConditionNotMet",
        only={"operation": (CONDITIONAL_WRITE,)},
        columns=(
            rate_column(
                "cas_write_conditions_not_met_per_s",
                "CasNot",
                "Conditional writes per second whose condition was not met",
                CONDITIONAL_WRITE,
            ),
        ),
    ),
    _of_conditional(
        "cassandra_client_request_unfinished_commits_total",
        "Number of serial reads and conditional writes that first completed another one's commit.",
        _BEAN + "UnfinishedCommit",
    ),
    _of_conditional(
        "cassandra_client_request_contended_total",
        "Number of serial reads and conditional writes that were repeated because of others on the same partition.",
        _BEAN + "ContentionHistogram",
        columns=(
            rate_column(
                "cas_write_contended_per_s",
                "CasCtn",
                "Conditional writes per second that were repeated because of others on the same partition",
                CONDITIONAL_WRITE,
            ),
        ),
    ),
    PAXOS_V2,
)

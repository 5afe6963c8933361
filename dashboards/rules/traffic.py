"""The traffic that rates of errors are compared with, by node."""

from dashboards.expression import Rate, where

TRAFFIC = {
    "requests": Rate("cassandra_client_requests_total"),
    "writes": Rate("cassandra_client_requests_total", where(operation="Write")),
    # Reads and writes of the node's own data, for whichever coordinator.
    "tasks": Rate(
        "cassandra_pool_completed_total",
        where(path="request", pool=("ReadStage", "MutationStage", "CounterMutationStage")),
    ),
}

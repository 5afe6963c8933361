"""The rates of a node's requests, writes and tasks, with which alerts compare the rates of errors."""

from dashboards.expression import Rate, where

TRAFFIC = {
    "requests": Rate("cassandra_client_requests_total"),
    "writes": Rate("cassandra_client_requests_total", where(operation="Write")),
    # Reads and writes of a node's local data, on behalf of any coordinator.
    "tasks": Rate(
        "cassandra_pool_completed_total",
        where(path="request", pool=("ReadStage", "MutationStage", "CounterMutationStage")),
    ),
}

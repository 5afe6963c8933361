"""Node samples for tests, and an assembler for them."""

from dataclasses import replace

from collector.live.cluster_interval import NodeInfo
from collector.live.interval_assembler import IntervalAssembler
from collector.model.histogram import Buckets
from collector.model.snapshot import Event, Rate, Sample, Tick
from exporters.live.live_columns import SUMMED
from tests.exporters.samples import TIME_S, busy, durations

INDEX = int(TIME_S) - 1
"""The number of the interval that ends at TIME_S."""


def sample_of(node: str, time_s: float = TIME_S, *events: Event, **figures: float) -> Sample:
    """Return a busy node's sample; `figures` may set the `reads` per second and the index of their `bucket`."""
    values = dict(busy().values)
    values["cassandra_operation_mode",] = "NORMAL"
    values["cassandra_endpoints_unreachable",] = 0.0
    values["cassandra_messages_dropped_total", "READ_REQ"] = Rate(0.0, 1.0)
    values["cassandra_messages_dropped_total", "MUTATION_REQ"] = Rate(0.0, 1.0)
    for operation in ("Read", "Write"):
        for failure in ("timeouts", "unavailables"):
            values[f"cassandra_client_request_{failure}_total", operation] = Rate(0.0, 1.0)
    if figures:
        bucket, count = int(figures.get("bucket", 40)), int(figures.get("reads", 1000))
        values["cassandra_client_requests_total", "Read"] = Rate(float(count), 1.0)
        values["cassandra_client_request_seconds_total", "Read"] = Rate(count * 0.001, 1.0)
        values["cassandra_client_request_duration_seconds", "Read"] = durations({bucket: count})
    return replace(busy(), node=node, tick=Tick(time_s), values=values, events=events)


def silent_sample(node: str, time_s: float = TIME_S) -> Sample:
    """Return the sample that an agent takes while Cassandra is not responding."""
    values = {series: value for series, value in busy().values.items() if not series[0].startswith("cassandra_")}
    event = Event("no_answer", "cassandra: http://10.0.0.3:8778/jolokia: Connection refused")
    return Sample(node, Tick(time_s), values, {"cpu": 1.0, "disk": 1.0}, (event,))


def read_durations(sample: Sample) -> Buckets:
    durations = sample.values["cassandra_client_request_duration_seconds", "Read"]
    assert isinstance(durations, Buckets)
    return durations


def reads_per_s(sample: Sample | None) -> float | None:
    rate = None if sample is None else sample.values.get(("cassandra_client_requests_total", "Read"))
    return rate.per_s if isinstance(rate, Rate) else None


def assembler_of(*nodes: str) -> IntervalAssembler:
    """Return an assembler that expects nodes with these keys."""
    assembler = IntervalAssembler(1.0, SUMMED)
    for index, node in enumerate(nodes):
        assembler.add_node(node, node)
        assembler.set_info(node, NodeInfo("Test Cluster", f"dc1/r{index % 3 + 1}", interval_s=1.0))
    return assembler

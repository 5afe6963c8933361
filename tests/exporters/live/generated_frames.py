"""Nodes and frames made up for tests."""

from dataclasses import replace

from collector.model.histogram import Buckets
from collector.model.sample import Rate, Sample
from collector.model.snapshot import Event, Tick
from exporters.live.frame import Frame
from exporters.live.frame_assembler import FrameAssembler, NodeInfo
from tests.exporters.samples import TIME_S, busy, durations

PLACE = int(TIME_S) - 1
"""The interval that ends at TIME_S."""


def of(node: str, time_s: float = TIME_S, *events: Event, **more: float) -> Sample:
    """Return a busy node's sample; `more` are its reads a second and where their durations are."""
    values = dict(busy().values)
    values["cassandra_operation_mode",] = "NORMAL"
    values["cassandra_endpoints_unreachable",] = 0.0
    values["cassandra_messages_dropped_total", "READ_REQ"] = Rate(0.0, 1.0)
    values["cassandra_messages_dropped_total", "MUTATION_REQ"] = Rate(0.0, 1.0)
    for operation in ("Read", "Write"):
        for what in ("timeouts", "unavailables"):
            values[f"cassandra_client_request_{what}_total", operation] = Rate(0.0, 1.0)
    if more:
        bucket, count = int(more.get("bucket", 40)), int(more.get("reads", 1000))
        values["cassandra_client_requests_total", "Read"] = Rate(float(count), 1.0)
        values["cassandra_client_request_seconds_total", "Read"] = Rate(count * 0.001, 1.0)
        values["cassandra_client_request_duration_seconds", "Read"] = durations({bucket: count})
    return replace(busy(), node=node, tick=Tick(time_s), values=values, events=events)


def silent(node: str, time_s: float = TIME_S) -> Sample:
    """Return what an agent tells whose Cassandra does not answer."""
    values = {series: value for series, value in busy().values.items() if not series[0].startswith("cassandra_")}
    told = Event("no_answer", "cassandra: http://10.0.0.3:8778/jolokia: Connection refused")
    return Sample(node, Tick(time_s), values, {"cpu": 1.0, "disk": 1.0}, (told,))


def buckets(sample: Sample) -> Buckets:
    found = sample.values["cassandra_client_request_duration_seconds", "Read"]
    assert isinstance(found, Buckets)
    return found


def gathered(*nodes: str) -> FrameAssembler:
    """Return a gathering that expects nodes by these keys."""
    gathering = FrameAssembler(1.0)
    for number, node in enumerate(nodes):
        gathering.meet(node, node)
        gathering.know(node, NodeInfo("Test Cluster", f"dc1/r{number % 3 + 1}", interval_s=1.0))
    return gathering


def frames(count: int = 20, nodes: int = 6) -> list[Frame]:
    """Return the frames of a cluster: one node is bad off, one silent, one gone, one that was never there."""
    names = [f"10.0.0.{number}" for number in range(1, nodes + 1)]
    gathering = gathered(*names)
    found = []
    for tick in range(count):
        time_s = TIME_S + tick
        for number, name in enumerate(names[:-1]):
            if number == 2:
                gathering.heard(name, of(name, time_s) if tick < count - 4 else silent(name, time_s), time_s + 0.2)
            elif number == 3 and tick >= count - 7:
                gathering.failed(name, "Connection refused", time_s + 0.1)
            else:
                events = [Event("gc", "GC G1 Young Generation 312 ms")] if number == 1 and tick % 8 == 7 else []
                reads = 800 + 300 * ((tick * 7 + number * 3) % 5)
                gathering.heard(
                    name, of(name, time_s, *events, reads=reads, bucket=62 if number == 1 else 38), time_s + 0.2
                )
        found.append(gathering.close(PLACE + tick, time_s + 0.5))
    return found

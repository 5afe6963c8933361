"""Ticks as sinks get them."""

from collections.abc import Mapping

from collector.model.metric import Metric
from collector.model.snapshot import Identity, Sample, Snapshot
from collector.recording.header import Header
from exporters.sinks.sink import NodeTick


def node_tick(catalogue: Mapping[str, Metric], identity: Identity, sample: Sample) -> NodeTick:
    """Return a tick with a sample, without raw values."""
    header = Header("1", 1.0, "session", metrics=tuple(catalogue.values()))
    return NodeTick(header, identity, Snapshot("n", sample.tick, ()), sample)

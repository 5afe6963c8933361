"""A sample with a value for each column."""

from dataclasses import replace

from collector.live.interval_assembler import sanitised
from collector.model.histogram import Buckets, upper_bounds_of
from collector.model.metric import Series
from collector.model.snapshot import JOLOKIA_SOURCE, Derived, Rate, Sample, Tick
from collector.node.catalogue import CATALOGUE
from collector.node.metrics.requests import OPERATIONS
from collector.node.node_sampler import SampleStream
from collector.simulation.simulated_cluster import simulated_cluster
from tests.exporters.samples import TIME_S


def full_sample() -> Sample:
    """Return a simulated node's sample, which also has local operations and decaying percentiles.

    All counters increase, so that a series that is read by mistake changes a column.
    """
    (node,) = simulated_cluster(1, 3)
    stream = SampleStream(CATALOGUE, (JOLOKIA_SOURCE,), paced=False, met=True)
    # Both ticks contain the slow series, so that the sample has all of them.
    ticks = (Tick(TIME_S), Tick(TIME_S + 1))
    (sample,) = stream.samples(node.snapshot(tick, 1.0, first=True) for tick in ticks)
    more: dict[Series, Derived] = {
        ("cassandra_cache_hits_total", "RowCache"): Rate(30.0, 1.0),
        ("cassandra_cache_requests_total", "RowCache"): Rate(40.0, 1.0),
    }
    bounds = upper_bounds_of("seconds", 128)
    for number, operation in enumerate((operation.scope for operation in OPERATIONS), 1):
        count = 100.0 * number
        if number > 2:
            counts = tuple(3 if index in (20, 30) else 0 for index in range(len(bounds)))
            more["cassandra_client_request_duration_seconds", operation] = Buckets(bounds, counts)
        more["cassandra_local_operations_total", operation] = Rate(count, 1.0)
        more["cassandra_local_operation_seconds_total", operation] = Rate(count * 0.003, 1.0)
        for quantile in ("0.5", "0.95", "0.99"):
            more["cassandra_client_request_decayed_seconds", operation, quantile] = count * float(quantile)
    values = {**sample.values, **more}.items()
    increasing = {
        series: value._replace(increase=value.increase + 1) if isinstance(value, Rate) else value
        for series, value in values
    }
    return sanitised(replace(sample, values=increasing))


def without_buckets(sample: Sample) -> Sample:
    """Return the sample without latency histograms, so that decaying percentiles are shown."""
    metric = "cassandra_client_request_duration_seconds"
    return replace(sample, values={series: value for series, value in sample.values.items() if series[0] != metric})

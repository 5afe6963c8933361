"""Percentiles as Cassandra's own attributes have them: decaying over minutes, of no interval.

They are read only where the bucket counts cannot be (Jolokia's policy refuses operations, or there is only
nodetool), and are never taken for those of an interval.
"""

from collections.abc import Mapping, Sequence

from collector.cassandra.requests import OPERATIONS
from collector.cassandra.tables import LOCAL
from collector.jolokia.mbean import METRICS, MBean
from collector.model.metric import Aggregation, Kind, Metric

QUANTILES = {"0.5": "50thPercentile", "0.95": "95thPercentile", "0.99": "99thPercentile", "1": "Max"}
QUANTILE = "quantile"


def _decayed(
    kind: str, what: str, bean: str, labels: tuple[str, ...], only: Mapping[str, Sequence[str]]
) -> list[MBean]:
    metric = Metric(
        f"cassandra_{kind}_decayed_seconds",
        Kind.GAUGE,
        "seconds",
        f"{what}: percentiles that decay over minutes, not those of an interval; only where buckets cannot be read.",
        (*labels, QUANTILE),
        scale=1e-6,
        # Percentiles cannot be averaged: that of all requests is no higher than the slowest node's.
        across=Aggregation.MAX,
    )
    return [MBean(metric, bean, attribute, only, fixed=(quantile,)) for quantile, attribute in QUANTILES.items()]


BEANS = (
    *_decayed(
        "client_request",
        "How long requests of clients took",
        METRICS + "type=ClientRequest,scope={operation},name=Latency",
        ("operation",),
        OPERATIONS,
    ),
    *_decayed(
        "keyspace_operation",
        "How long local operations on the keyspace took",
        METRICS + "type=Keyspace,keyspace={keyspace},name={operation}Latency",
        ("keyspace", "operation"),
        LOCAL,
    ),
    *_decayed(
        "table_operation",
        "How long local operations on the table took",
        METRICS + "type=Table,keyspace={keyspace},scope={table},name={operation}Latency",
        ("keyspace", "table", "operation"),
        LOCAL,
    ),
)
DECAYED = frozenset(bean.metric.name for bean in BEANS)

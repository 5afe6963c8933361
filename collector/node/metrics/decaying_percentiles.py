"""Cassandra's decaying percentiles: quantiles of an exponentially decaying reservoir, not of an interval.

They are read only if bucket counts are unavailable, either because Jolokia's policy denies operations or because only
nodetool is present. They are never mixed with interval percentiles.
"""

from collections.abc import Mapping, Sequence

from collector.model.mbean import METRICS, MBean
from collector.model.metric import Aggregation, Kind, Metric
from collector.node.metrics.requests import SCOPES
from collector.node.metrics.tables import LOCAL

QUANTILES = {"0.5": "50thPercentile", "0.95": "95thPercentile", "0.99": "99thPercentile", "1": "Max"}
QUANTILE = "quantile"


def _decayed(
    kind: str, quantity: str, bean: str, labels: tuple[str, ...], only: Mapping[str, Sequence[str]]
) -> list[MBean]:
    metric = Metric(
        f"cassandra_{kind}_decayed_seconds",
        Kind.GAUGE,
        "seconds",
        f"Exponentially decaying quantile of the {quantity}, in seconds; read only if bucket counts are not available.",
        (*labels, QUANTILE),
        scale=1e-6,
        # Percentiles cannot be averaged. The maximum over all nodes is an upper bound on the cluster's percentile.
        across=Aggregation.MAX,
    )
    return [MBean(metric, bean, attribute, only, fixed=(quantile,)) for quantile, attribute in QUANTILES.items()]


BEANS = (
    *_decayed(
        "client_request",
        "duration of client requests",
        METRICS + "type=ClientRequest,scope={operation},name=Latency",
        ("operation",),
        SCOPES,
    ),
    *_decayed(
        "keyspace_operation",
        "duration of local operations on the keyspace",
        METRICS + "type=Keyspace,keyspace={keyspace},name={operation}Latency",
        ("keyspace", "operation"),
        LOCAL,
    ),
    *_decayed(
        "table_operation",
        "duration of local operations on the table",
        METRICS + "type=Table,keyspace={keyspace},scope={table},name={operation}Latency",
        ("keyspace", "table", "operation"),
        LOCAL,
    ),
)
DECAYED = frozenset(bean.metric.name for bean in BEANS)

"""Cassandra's decaying percentiles: quantiles of an exponentially decaying reservoir, not of an interval.

They are read only if bucket counts are unavailable, either because Jolokia's policy denies operations or because only
nodetool is present. They are never mixed with interval percentiles.
"""

from collections.abc import Mapping, Sequence

from collector.model.mbean import METRICS, gauge
from collector.model.metric import Aggregation
from collector.node.metrics.requests import SCOPES
from collector.node.metrics.tables import LOCAL

QUANTILES = {"0.5": "50thPercentile", "0.95": "95thPercentile", "0.99": "99thPercentile", "1": "Max"}
QUANTILE = "quantile"
_KINDS: tuple[tuple[str, str, str, Mapping[str, Sequence[str]]], ...] = (
    ("client_request", "client requests", "type=ClientRequest,scope={operation},name=Latency", SCOPES),
    (
        "keyspace_operation",
        "local operations on the keyspace",
        "type=Keyspace,keyspace={keyspace},name={operation}Latency",
        LOCAL,
    ),
    (
        "table_operation",
        "local operations on the table",
        "type=Table,keyspace={keyspace},scope={table},name={operation}Latency",
        LOCAL,
    ),
)

BEANS = tuple(
    gauge(
        f"cassandra_{kind}_decayed_seconds",
        f"Exponentially decaying quantile of the duration of {operations}, in seconds; read only if bucket counts are "
        "not available.",
        METRICS + bean,
        attribute,
        labels=(QUANTILE,),
        fixed=(quantile,),
        unit="seconds",
        scale=1e-6,
        # Percentiles cannot be averaged. The maximum over all nodes is an upper bound on the cluster's percentile.
        across=Aggregation.MAX,
        only=only,
    )
    for kind, operations, bean, only in _KINDS
    for quantile, attribute in QUANTILES.items()
)
DECAYED = frozenset(bean.metric.name for bean in BEANS)

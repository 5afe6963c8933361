"""Recording rules: the burn rates of latency objectives, and the metrics in `casstat top` per cluster.

A burn rate is the ratio of slow requests over several windows. The first rule sums the buckets of all nodes; the others
read the few series that it records, not those of every node. Metrics are aggregated as the catalogue specifies.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from collector.model.metric import Kind, Metric
from collector.node.catalogue import CATALOGUE
from dashboards.expression import Gauge, Rate, aggregation_of, where
from dashboards.promql import FUNCTIONS, selector
from dashboards.rules.alert import CLUSTER, CRITICAL, MATCH, WARNING, WINDOW, aggregate, rule_query
from dashboards.rules.alerts.cluster import ANSWERS
from dashboards.thresholds import OBJECTIVES, Objective
from exporters.live.live_columns import NEEDS
from exporters.metrics_page.metric_family import LABELLED_LENGTH, QUANTILE, TOTAL, UpperBounds

DURATION = "cassandra_client_request_duration_seconds_bucket"
BUCKETS = f"cluster_dc_operation_le:{DURATION}:rate{WINDOW}"
BY = ("cluster", "dc")
SLOW = "cluster_dc_operation:cassandra_client_request_slow"
WINDOWS = {WARNING: ("1d", "2h"), CRITICAL: ("1h", WINDOW)}
"""The long and the short window by severity; the burn rate must exceed its threshold in both."""
NODES = "cluster:casstat_nodes:count"
"""The number of nodes that are answering and therefore contribute to the cluster values."""


@dataclass(frozen=True)
class RecordingRule:
    """A recorded series: its name, its query, and labels that distinguish series with the same name."""

    name: str
    query: str
    labels: Mapping[str, str] = field(default_factory=dict)


def ratio_name(window: str) -> str:
    """Return the name of the recorded ratio of slow requests over a window."""
    return f"{SLOW}:ratio_rate{window}"


def nearest_le(bound_s: float) -> str:
    """Return the `le` label nearest to `bound_s`; the labels are the same for all Cassandra versions.

    Raises ValueError for a bound that is not one of the agent's defaults.
    """
    if bound_s not in UpperBounds().seconds:
        raise ValueError(f"{bound_s:g} s: not an upper bound of the agent's histograms (hint: choose one of DEFAULT_S)")
    return UpperBounds((bound_s,)).bounds("seconds", LABELLED_LENGTH)[0].le


def burn_rate_rules() -> tuple[RecordingRule, ...]:
    """Return the rules in evaluation order."""
    buckets = f"sum by ({', '.join((*BY, 'operation', 'le'))}) (rate({selector(DURATION, (), MATCH)}[{WINDOW}]))"
    windows = sorted({window for pair in WINDOWS.values() for window in pair}, key=_length)
    shares = (
        RecordingRule(ratio_name(window), _slow_ratio(objective, window), {"operation": objective.operation})
        for objective in OBJECTIVES.values()
        for window in windows
    )
    return RecordingRule(BUCKETS, buckets), *shares


def _slow_ratio(objective: Objective, window: str) -> str:
    """Return the query for the ratio of slow requests; it has no result if there are too few requests."""

    def total(function: str, le: str) -> str:
        series = selector(BUCKETS, where(operation=objective.operation, le=le))
        inside = series if window == WINDOW else f"{function}({series}[{window}])"
        return f"sum by ({', '.join(BY)}) ({inside})"

    fast, every = total("sum_over_time", nearest_le(objective.bound_s)), total("sum_over_time", "+Inf")
    return f"1 - {fast} / ({every} and {total('avg_over_time', '+Inf')} > {objective.min_per_s:g})"


def _length(window: str) -> int:
    return int(window[:-1]) * {"m": 1, "h": 60, "d": 1440}[window[-1]]


def cluster_rules() -> tuple[RecordingRule, ...]:
    """Return a rule for the number of nodes, and one for each counter and gauge that `top` needs, except quantiles."""
    metrics = [CATALOGUE[name] for name in sorted(NEEDS)]
    return RecordingRule(NODES, aggregate("count", f"{ANSWERS} == 1", CLUSTER)), *map(
        _recorded, filter(_is_recorded, metrics)
    )


def _is_recorded(metric: Metric) -> bool:
    return metric.kind in (Kind.COUNTER, Kind.GAUGE) and QUANTILE not in metric.labels


def _recorded(metric: Metric) -> RecordingRule:
    """Return the rule for a metric, named according to Prometheus' convention `level:metric:operations`."""
    # Series are not grouped by device, because device names differ between machines.
    labels = tuple(label for label in metric.labels if label != "device")
    expression = Rate(metric.name) if metric.kind is Kind.COUNTER else Gauge(metric.name)
    operation = function = FUNCTIONS[aggregation_of(expression)]
    if isinstance(expression, Rate):
        operation = f"rate{WINDOW}" if function == "sum" else f"{function}_rate{WINDOW}"
        # If series are aggregated differently within a node and across nodes, omit the labels, so that a node's series,
        # such as its collectors' GC times, are combined before the nodes are averaged.
        labels = labels if function == expression.within_node else ()
    name = f"{'_'.join((*CLUSTER, *labels))}:{metric.name.removesuffix(TOTAL)}:{operation}"
    return RecordingRule(name, rule_query(expression, (*CLUSTER, *labels)))

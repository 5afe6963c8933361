"""Recording rules that aggregate the metrics in `casstat top` per cluster, as the catalogue specifies."""

from collector.model.metric import Kind, Metric
from collector.node.catalogue import CATALOGUE
from dashboards.expression import Gauge, Rate, aggregation_of
from dashboards.promql import FUNCTIONS
from dashboards.rules.alert import CLUSTER, WINDOW, aggregate, rule_query
from dashboards.rules.alerts.cluster import ANSWERS
from dashboards.rules.recording_rule import RecordingRule
from exporters.live.live_columns import NEEDS
from exporters.metrics_page.metric_family import QUANTILE, TOTAL

NODES = "cluster:casstat_nodes:count"
"""The number of nodes that are answering and therefore contribute to the cluster values."""


def recording_rules() -> tuple[RecordingRule, ...]:
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

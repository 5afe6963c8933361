"""Recording rules for the burn rates of latency objectives: the ratio of slow requests over several windows.

The first rule sums the buckets of all nodes. The other rules read the few series that it records, not those of every
node.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dashboards.expression import where
from dashboards.promql import selector
from dashboards.rules.alert import CRITICAL, MATCH, WARNING, WINDOW
from dashboards.thresholds import OBJECTIVES, Objective
from exporters.metrics_page.metric_family import LABELLED_LENGTH, UpperBounds

DURATION = "cassandra_client_request_duration_seconds_bucket"
BUCKETS = f"cluster_dc_operation_le:{DURATION}:rate{WINDOW}"
BY = ("cluster", "dc")
SLOW = "cluster_dc_operation:cassandra_client_request_slow"
WINDOWS = {WARNING: ("1d", "2h"), CRITICAL: ("1h", WINDOW)}
"""The long and the short window by severity; the burn rate must exceed its threshold in both."""


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

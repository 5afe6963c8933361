"""The verdict on all steps at a rate: the objectives, and whether the load generator achieved the rate."""

from collections.abc import Mapping, Sequence

import numpy as np

from exporters.capacity.batch_means import ratio_interval
from exporters.capacity.evidence import StepData, evidence_of
from exporters.capacity.number_text import measured_text, rate_text
from exporters.capacity.objective_verdict import Verdict, combined, verdict_on
from exporters.comparison.client_amounts import ALL
from exporters.line.formulas import Cell
from exporters.summary.conditions import Condition

MIN_ACHIEVED = 0.99
"""The share of the target rate that the load generator must achieve."""
LEVEL = 0.001
"""Every step is tested, so a false alarm must be rare."""


def step_verdict(objectives: Sequence[Condition], steps: Sequence[StepData], rate: float) -> Verdict:
    """Return the verdict on the steps at a rate."""
    verdicts = [verdict_on(objective, [evidence_of(objective, step) for step in steps]) for objective in objectives]
    return combined([*verdicts, achieved_verdict(steps, rate), refused_verdict(steps[-1].values)])


_REFUSED = ("read_timeouts", "write_timeouts", "requests_discarded")


def refused_verdict(values: Mapping[str, Cell]) -> Verdict:
    """Return whether no request timed out or was discarded, if the load generator states only service times.

    Service times of an overloaded cluster may look healthy, because they do not include queueing.
    """
    if values.get("client_latency") == "response":
        return Verdict(True)
    refused = [
        f"{name} is {measured_text(cell)}"
        for name in _REFUSED
        if isinstance(cell := values.get(name), int | float) and cell
    ]
    return Verdict(not refused, reason=", ".join(refused))


def achieved_verdict(steps: Sequence[StepData], rate: float) -> Verdict:
    """Return whether the load generator achieved its target rate, including failed operations.

    Response times include the wait of requests that were sent late, and requests may be sent at random times. A rate
    is then too low only if its confidence interval is below the limit. With service times, its value must reach the
    limit.
    """
    parts = [
        np.column_stack((bins.completed + bins.failed, bins.lengths_s))
        for step in steps
        if (bins := step.client.get(ALL)) is not None
    ]
    if len(parts) < len(steps):
        return Verdict(False, reason="no client results")
    totals = sum((part.sum(axis=0) for part in parts), np.zeros(2))
    achieved = float(totals[0] / totals[1])
    interval = ratio_interval(parts, is_count=True, level=LEVEL)
    has_response = all(step.values.get("client_latency") == "response" for step in steps)
    highest = interval.high if has_response and interval is not None else achieved
    if highest >= MIN_ACHIEVED * rate:
        return Verdict(True)
    return Verdict(False, reason=f"{measured_text(achieved)} of {rate_text(rate)} operations per second were achieved")

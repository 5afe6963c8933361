"""The verdict on a step of a search: whether it meets all objectives."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from exporters.results.capacity.batch_means import ratio_interval
from exporters.results.capacity.evidence import Evidence
from exporters.results.capacity.number_text import measured_text
from exporters.results.summary.conditions import OPERATORS, Condition


class Failure(IntEnum):
    """Why a step does not meet the objectives. Of several failures, the highest certain one counts.

    NO_RESULT  it has no values that could be judged.
    OBJECTIVE  it misses an objective.
    RATE       the load generator did not achieve its rate, which may be why it misses objectives as well.
    """

    NO_RESULT = 0
    OBJECTIVE = 1
    RATE = 2


@dataclass(frozen=True)
class Verdict:
    """Whether a step meets an objective, or all of them.

    is_certain  whether the limit is outside the confidence interval, or the column cannot be tested.
    reason      why the step does not meet the objectives; otherwise "".
    failure     the kind of the reason, if there is one.
    """

    is_met: bool
    is_certain: bool = True
    reason: str = ""
    failure: Failure = Failure.OBJECTIVE

    @property
    def text(self) -> str:
        return f"{'ok' if self.is_met else self.reason}{'' if self.is_certain else ' (uncertain)'}"


def verdict_on(objective: Condition, steps: Sequence[Evidence]) -> Verdict:
    """Return whether steps at the same rate meet an objective, from the intervals of all steps together.

    A column that cannot be tested is judged by its value in the last step.
    """
    last = steps[-1]
    if last.value is None:
        return Verdict(False, reason=f"no value for {objective.column}", failure=Failure.NO_RESULT)
    reason = f"{objective.column} is {measured_text(last.value, 6)}"
    amounts = [step.amounts for step in steps if step.amounts is not None and len(step.amounts)]
    if len(amounts) < len(steps):
        is_met = OPERATORS[objective.operator](last.value, objective.limit)
        return Verdict(is_met, reason="" if is_met else reason)
    numerator, denominator = (sum(float(part[:, column].sum()) for part in amounts) for column in (0, 1))
    is_met = OPERATORS[last.operator](numerator, last.limit * denominator)
    if OPERATORS[objective.operator](last.value, objective.limit):
        reason = f"{objective.text} is not met by all {len(steps)} steps at this rate together"
    interval = ratio_interval(amounts, is_count=last.is_count)
    is_certain = interval is not None and not interval.low <= last.limit <= interval.high
    return Verdict(is_met, is_certain, "" if is_met else reason)


def combined(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on all objectives: certain if one is certainly not met, or if all are certainly met."""
    known = list(verdicts)
    failed = [verdict for verdict in known if not verdict.is_met]
    if failed:
        certain = [verdict for verdict in failed if verdict.is_certain]
        failure = max(verdict.failure for verdict in certain or failed)
        return Verdict(False, bool(certain), "; ".join(verdict.reason for verdict in failed), failure)
    return Verdict(True, all(verdict.is_certain for verdict in known))

"""One thing worth seeing."""

from dataclasses import dataclass
from enum import Enum

from dashboards.expression import Expression


class Unit(Enum):
    """What a signal is counted in; the value is Grafana's word for it."""

    PER_S = "ops"
    SECONDS = "s"
    BYTES = "bytes"
    BYTES_PER_S = "Bps"
    RATIO = "percentunit"
    COUNT = "short"


@dataclass(frozen=True)
class Signal:
    """One thing worth seeing.

    name    by which panels, rules and thresholds call it.
    title   of its panel.
    help    what it tells people: what it means when it is high, or low.
    each    labels that its series have beside the node's, such as the table: panels may keep them apart.
    absent  why there may be nothing to see; "" where there is always something.
    bounded       whether it is a share of a whole, which cannot exceed 1. A rate over a few samples can: it is clamped.
    low_is_worse  whether low values are the bad ones, so that the worst series are those with the lowest.
    """

    name: str
    title: str
    expression: Expression
    unit: Unit
    help: str
    labels: tuple[str, ...] = ()
    absent: str = ""
    bounded: bool = False
    low_is_worse: bool = False

"""Signals as plain data. Panels show them, alerts compare them with thresholds, and `casstat top` colours them."""

from dataclasses import dataclass
from enum import Enum

from dashboards.expression import Expression


class Unit(Enum):
    """The unit of a signal; the value is Grafana's name for it."""

    PER_S = "ops"
    SECONDS = "s"
    BYTES = "bytes"
    BYTES_PER_S = "Bps"
    RATIO = "percentunit"
    COUNT = "short"


@dataclass(frozen=True)
class Signal:
    """An expression with a title, a unit and a description.

    name          the name in panels, rules and thresholds.
    title         the default title of a panel.
    help          the meaning of the value, and of high or low values.
    labels        additional labels that panels may group by, such as the table.
    absent        a sentence that states when the signal has no value; "" for the general reasons, such as a failure of
                  the agent.
    bounded       whether it is a ratio of at most 1; if measured rates yield a higher ratio, it is clamped to 1.
    low_is_worse  whether the worst series are those with the lowest values.
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

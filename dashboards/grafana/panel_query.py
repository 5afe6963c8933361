"""Panel queries, and the interface of the stores that render them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dashboards.grafana.panel_model import Dashboard, Panel

NO_STATE = -1
"""The value of a state timeline without any series."""


@dataclass(frozen=True)
class Query:
    """One query of a panel.

    legend        Grafana's template for the series names.
    form          "series" for values over time, "table" for one value per series, "buckets" for a heat map, or "math"
                  for an expression that Grafana evaluates over the panel's other queries.
    visible       whether the panel displays the result; False for an operand of a "math" query.
    min_interval  the minimum time between two values, such as "60s"; "" for the panel's minimum.
    colour        the fixed colour of the values; "" for the panel's colours.
    """

    text: str
    legend: str = ""
    form: str = "series"
    visible: bool = True
    min_interval: str = ""
    colour: str = ""


def ref_id(index: int) -> str:
    """Return the letter by which Grafana refers to a panel's query: "A" for index 0."""
    return chr(ord("A") + index)


@dataclass(frozen=True)
class Variable:
    """A variable whose values come from the store.

    all_value  the regular expression for the "All" option; it must not match series without the label. If it is "",
               Grafana uses an alternation of all values.
    """

    name: str
    title: str
    query: str
    all_value: str = ".+"


@dataclass(frozen=True)
class Annotation:
    """An annotation that is displayed in every panel.

    text      the template of the displayed text.
    tags      the labels that are displayed as tags.
    at_value  whether the series' value is the time of the event, in milliseconds.
    """

    name: str
    query: str
    colour: str
    text: str
    tags: tuple[str, ...] = ("node",)
    at_value: bool = False
    enabled: bool = True


class Store(Protocol):
    """A kind of data source."""

    @property
    def name(self) -> str:
        """The type of the data source in Grafana."""

    @property
    def title(self) -> str:
        """The product name."""

    @property
    def by(self) -> Sequence[tuple[str, str]]:
        """The displayed text of each choice for $by, and its value in queries."""

    def dashboards(self, definitions: Sequence[Dashboard]) -> list[Dashboard]:
        """Return the dashboards without the panels that this store cannot fill."""

    def queries(self, panel: Panel, tables: bool) -> list[Query]:
        """Return the queries of a panel; `tables` is true if its dashboard has variables for keyspaces and tables."""

    def panel_title(self, panel: Panel) -> str:
        """Return the displayed title: the panel's name, with a note if this store computes the values differently."""

    def panel_description(self, panel: Panel) -> str:
        """Return the displayed description, with notes on how this store computes and limits the values."""

    def variables(self, dashboard: Dashboard) -> list[Variable]:
        """Return the variables in order; each one restricts the values of those after it."""

    def annotations(self) -> list[Annotation]:
        """Return the annotations, which all dashboards share."""

    def min_interval(self, panel: Panel) -> str:
        """Return the minimum time between two values of a panel; "" for the data source's setting."""

    def target(self, query: Query, ref: str) -> object:
        """Return a builder for the JSON form of a query: the SDK's, or an object with the same interface."""

    def annotation(self, annotation: Annotation) -> dict[str, object]:
        """Return the fields of an annotation that are specific to this store."""

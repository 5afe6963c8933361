"""What a panel asks a store, and what a store must be able to say."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dashboards.grafana.panel_model import Dashboard, Panel


@dataclass(frozen=True)
class Query:
    """One question.

    legend   how Grafana is to call what comes of it.
    form     "series" over time, "table" of the values now, "buckets" of a heat map, or "math" of other questions,
             which Grafana itself does.
    shown    whether its answer is, and not only what is made of it.
    least_step  the least time between two values, such as "60s"; "" for the panel's own.
    """

    text: str
    legend: str = ""
    form: str = "series"
    shown: bool = True
    least_step: str = ""


def ref(place: int) -> str:
    """Return what the question at this place among a panel's is called."""
    return chr(ord("A") + place)


@dataclass(frozen=True)
class Chosen:
    """A variable whose values the store tells.

    all_value  the regular expression that All stands for: it must not match series without the label. "" for the
               alternation of all values.
    """

    name: str
    title: str
    query: str
    all_value: str = ".+"


@dataclass(frozen=True)
class Mark:
    """An annotation.

    text     what stands beside it, `tags` the labels that are shown as tags.
    at_value whether the value is the time of what happened, in milliseconds.
    """

    name: str
    query: str
    colour: str
    text: str
    tags: tuple[str, ...] = ("node",)
    at_value: bool = False
    enabled: bool = True


class Store(Protocol):
    """A kind of store."""

    @property
    def name(self) -> str:
        """Grafana's word for the data source."""

    @property
    def title(self) -> str:
        """What people call it."""

    @property
    def by(self) -> Sequence[tuple[str, str]]:
        """The choices of $by, and what each means in a query."""

    def boards(self, boards: Sequence[Dashboard]) -> list[Dashboard]:
        """Return what of the boards can be had from this store."""

    def queries(self, panel: Panel, tables: bool) -> list[Query]:
        """Return what a panel asks; `tables` says whether keyspaces and tables may be chosen on its board."""

    def title_of(self, panel: Panel) -> str:
        """Return the panel's title."""

    def text_of(self, panel: Panel) -> str:
        """Return the panel's description."""

    def chosen(self, board: Dashboard) -> list[Chosen]:
        """Return the variables in their order: each narrows those after it down."""

    def marks(self) -> list[Mark]:
        """Return the annotations."""

    def least_step(self, panel: Panel) -> str:
        """Return the least time between two values that a panel may ask for; "" for what the data source says."""

    def target(self, query: Query, name: str) -> object:
        """Return a query as it stands in a panel's JSON."""

    def annotation(self, mark: Mark) -> dict[str, object]:
        """Return the fields of an annotation that only this store has."""

"""What is around the panels of every board: variables, annotations, links."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grafana_foundation_sdk.builders import dashboard as sdk
from grafana_foundation_sdk.models import dashboard as model

from dashboards.grafana.panel_model import Dashboard, Split
from dashboards.grafana.panel_query import Chosen, Mark, Store

SOURCE = "${datasource}"
TOPN = ("5", "10", "20", "50")


def source_of(store: Store) -> Any:
    """Return the data source that the board's first variable chooses."""
    return model.DataSourceRef(type_val=store.name, uid=SOURCE)


def variables(store: Store, board: Dashboard) -> list[Any]:
    """Return the variables: the data source first, then from the whole to its parts."""
    chosen = [_chosen(store, each) for each in store.chosen(board)]
    source = sdk.DatasourceVariable("datasource").label("Data source").type(store.name)
    by = _custom("by", "Split by", store.by, "node", "What has a line of its own.")
    topn = _custom("topn", "Worst", [(each, each) for each in TOPN], "5", "How many of the worst are shown.")
    panels = [panel for row in board.rows for panel in row.panels]
    split = [by] if any(panel.lines and panel.split is Split.CHOSEN for panel in panels) else []
    asked = [query for panel in panels if panel.lines for query in store.queries(panel, board.tables)]
    worst = [topn] if any("$topn" in query.text for query in asked) else []
    return [source, *chosen, *split, *worst]


def _chosen(store: Store, each: Chosen) -> Any:
    made = sdk.QueryVariable(each.name).label(each.title).query(_query(store, each)).datasource(source_of(store))
    made = made.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(model.VariableSort.ALPHABETICAL_ASC)
    everything = model.VariableOption(selected=True, text=["All"], value=["$__all"])
    made = made.multi(True).include_all(True).current(everything)
    return made.all_value(each.all_value) if each.all_value else made


def _query(store: Store, each: Chosen) -> Any:
    return {"query": each.query, "refId": f"variable-{each.name}"} if store.name == "prometheus" else each.query


def _custom(name: str, title: str, choices: Sequence[tuple[str, str]], first: str, text: str) -> Any:
    query = ",".join(f"{shown} : {value.replace(',', chr(92) + ',')}" for shown, value in choices)
    options = [model.VariableOption(selected=shown == first, text=shown, value=value) for shown, value in choices]
    (current,) = [option for option in options if option.selected]
    made = sdk.CustomVariable(name).label(title).description(text).values(query)
    return made.options(options).current(current).allow_custom_value(False)


def links(store: Store, boards: Sequence[Dashboard]) -> list[Any]:
    """Return the links to all boards of the same store; they keep the time and what is chosen."""
    return [
        sdk.DashboardLink(board.title)
        .type(model.DashboardLinkType.LINK)
        .url(f"/d/{uid(store, board)}")
        .tooltip(board.text.partition(".")[0])
        .icon("dashboard")
        .keep_time(True)
        .include_vars(True)
        for board in boards
    ]


def uid(store: Store, board: Dashboard) -> str:
    """Return what a board is known by, whatever its title."""
    return f"casstat-{board.name}" if store.name == "prometheus" else f"casstat-{board.name}-{store.name}"


@dataclass(frozen=True)
class Annotation:
    """An annotation as it stands in the JSON: the SDK's has not all fields that stores have."""

    store: Store
    mark: Mark

    def build(self) -> "Annotation":
        """Return itself, as the SDK wants it."""
        return self

    def to_json(self) -> dict[str, object]:
        """Return the fields."""
        return {
            "name": self.mark.name,
            "datasource": {"type": self.store.name, "uid": SOURCE},
            "enable": self.mark.enabled,
            "hide": False,
            "iconColor": self.mark.colour,
            **self.store.annotation(self.mark),
        }

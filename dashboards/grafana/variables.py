"""The elements that all dashboards share: variables, annotations and links."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grafana_foundation_sdk.builders import dashboard as sdk
from grafana_foundation_sdk.models import dashboard as model

from dashboards.grafana.panel_model import Dashboard, Split
from dashboards.grafana.panel_query import Annotation, Store, Variable

SOURCE = "${datasource}"
TOPN = ("5", "10", "20", "50")


def data_source(store: Store) -> Any:
    """Return the reference to the data source that the dashboard's first variable selects."""
    return model.DataSourceRef(type_val=store.name, uid=SOURCE)


def variables(store: Store, dashboard: Dashboard) -> list[Any]:
    """Return the variables: the data source, then the selectors that the store provides, then the display options."""
    selectors = [_query_variable(store, variable) for variable in store.variables(dashboard)]
    source = sdk.DatasourceVariable("datasource").label("Data source").type(store.name)
    by = _custom("by", "Split by", store.by, "node", "What each line represents: a cluster, data centre, rack or node.")
    topn = _custom(
        "topn", "Worst", [(count, count) for count in TOPN], "5", "The number of series to show, worst first."
    )
    panels = [panel for row in dashboard.rows for panel in row.panels]
    split = [by] if any(panel.lines and panel.split is Split.VARIABLE for panel in panels) else []
    queries = [query for panel in panels if panel.lines for query in store.queries(panel, dashboard.tables)]
    worst = [topn] if any("$topn" in query.text for query in queries) else []
    return [source, *selectors, *split, *worst]


def _query_variable(store: Store, variable: Variable) -> Any:
    query: Any = variable.query
    if store.name == "prometheus":
        query = {"query": variable.query, "refId": f"variable-{variable.name}"}
    builder = sdk.QueryVariable(variable.name).label(variable.title).query(query).datasource(data_source(store))
    builder = builder.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(model.VariableSort.ALPHABETICAL_ASC)
    everything = model.VariableOption(selected=True, text=["All"], value=["$__all"])
    builder = builder.multi(True).include_all(True).current(everything)
    return builder.all_value(variable.all_value) if variable.all_value else builder


def _custom(name: str, title: str, choices: Sequence[tuple[str, str]], default: str, description: str) -> Any:
    query = ",".join(f"{text} : {value.replace(',', chr(92) + ',')}" for text, value in choices)
    options = [model.VariableOption(selected=text == default, text=text, value=value) for text, value in choices]
    (current,) = [option for option in options if option.selected]
    builder = sdk.CustomVariable(name).label(title).description(description).values(query)
    return builder.options(options).current(current).allow_custom_value(False)


def links(store: Store, linked: Sequence[Dashboard]) -> list[Any]:
    """Return links to all of a store's dashboards; they keep the time range and the variables."""
    return [
        sdk.DashboardLink(dashboard.title)
        .type(model.DashboardLinkType.LINK)
        .url(f"/d/{uid(store, dashboard)}")
        .tooltip(dashboard.description.partition(".")[0])
        .icon("dashboard")
        .keep_time(True)
        .include_vars(True)
        for dashboard in linked
    ]


def uid(store: Store, dashboard: Dashboard) -> str:
    """Return the dashboard's uid, which links and uploads depend on."""
    return f"casstat-{dashboard.name}" if store.name == "prometheus" else f"casstat-{dashboard.name}-{store.name}"


@dataclass(frozen=True)
class AnnotationJson:
    """The JSON form of an annotation; the SDK's class lacks fields that some stores need."""

    store: Store
    annotation: Annotation

    def build(self) -> "AnnotationJson":
        """Return this object, because the SDK expects a builder."""
        return self

    def to_json(self) -> dict[str, object]:
        """Return the fields for the SDK's JSON encoder."""
        return {
            "name": self.annotation.name,
            "datasource": {"type": self.store.name, "uid": SOURCE},
            "enable": self.annotation.enabled,
            "hide": False,
            "iconColor": self.annotation.colour,
            **self.store.annotation(self.annotation),
        }

"""The catalogue as a page for people (docs/metrics.md)."""

from collections.abc import Iterable

from collector.model.metric import Metric, Owner, ScrapeInterval

HEAD = """# Metrics

Made by `casstat metrics --format markdown` from the rows beside the code that reads them; a test keeps it current.

*kind*: a **counter** only grows, and is shown as a rate per second of the interval; a **gauge** is shown as it is; a
**histogram** holds Cassandra's own bucket counts, from whose differences percentiles of the interval are made.
*every*: how often it is read; tables and keyspaces that are not asked for by name are read once a minute.
*column*: its name in `casstat --wide`.
*across*: how the values of several nodes become the cluster's, in `merge`, `top`, plots, dashboards and recording
rules alike: **sum**, **mean**, **max**, **min**, **merge** (bucket counts add up), or **equal** (a text that all nodes
share). For a counter it is the rate that is aggregated; increases always add up. A metric of the **machine** or of its
**network** counts once for all nodes on it.

| metric | kind | unit | labels | every | across | column | meaning |
|---|---|---|---|---|---|---|---|
"""

EVERY = {ScrapeInterval.TICK: "tick", ScrapeInterval.SLOW: "minute", ScrapeInterval.HOURLY: "on demand"}


def page(metrics: Iterable[Metric]) -> str:
    """Return the page as Markdown."""
    return HEAD + "".join(map(_row, metrics))


def _row(metric: Metric) -> str:
    columns = ", ".join(f"`{column.name}`" for column in metric.columns)
    return (
        f"| `{metric.name}` | {metric.kind.value} | {metric.unit} | {', '.join(metric.labels)} | "
        f"{EVERY[metric.scrape_interval]} | {_across(metric)} | {columns} | {metric.help} |\n"
    )


def _across(metric: Metric) -> str:
    """Return how nodes are aggregated, and what is measured where that is not the node."""
    owner = "" if metric.owner is Owner.NODE else f" ({metric.owner.value})"
    return f"{metric.aggregation.value}{owner}"

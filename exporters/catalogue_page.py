"""The catalogue as a page for people (docs/metrics.md)."""

from collections.abc import Iterable

from collector.model import Metric, Tier

HEAD = """# Metrics

Made by `casstat metrics --format markdown` from the rows beside the code that reads them; a test keeps it current.

*kind*: a **counter** only grows, and is shown as a rate per second of the interval; a **gauge** is shown as it is; a
**histogram** holds Cassandra's own bucket counts, from whose differences percentiles of the interval are made.
*every*: how often it is read; tables and keyspaces that are not asked for by name are read once a minute.
*column*: its name in `casstat --wide`.

| metric | kind | unit | labels | every | column | meaning |
|---|---|---|---|---|---|---|
"""

EVERY = {Tier.TICK: "tick", Tier.SLOW: "minute", Tier.HOURLY: "on demand"}


def page(metrics: Iterable[Metric]) -> str:
    """Return the page as Markdown."""
    return HEAD + "".join(
        f"| `{metric.name}` | {metric.kind.value} | {metric.unit} | {', '.join(metric.labels)} | "
        f"{EVERY[metric.tier]} | {', '.join(f'`{shown.name}`' for shown in metric.shown)} | {metric.help} |\n"
        for metric in metrics
    )

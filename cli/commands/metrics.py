"""List all metrics with kind, unit, labels and description

PATTERN restricts the list to metrics whose name contains it. After the description come the {labels}, then
[slow] for metrics read once a minute.
"""

import json

import click

from cli.parameters.parameter_types import format_option
from collector.model.metric import Metric
from collector.node.catalogue import CATALOGUE
from exporters.catalogue_page import page

GROUP = "watch"


def _object(metric: Metric) -> dict[str, object]:
    return {
        "name": metric.name,
        "kind": metric.kind.value,
        "unit": metric.unit,
        "labels": list(metric.labels),
        "every_s": metric.scrape_interval.value,
        "columns": [column.name for column in metric.columns],
        "help": metric.help,
    }


def _text(metrics: list[Metric]) -> str:
    width = max((len(metric.name) for metric in metrics), default=0)
    rows = []
    for metric in metrics:
        labels = f" {{{', '.join(metric.labels)}}}" if metric.labels else ""
        pace = f" [{metric.scrape_interval.name.lower()}]" if metric.scrape_interval.value else ""
        rows.append(f"{metric.name:{width}}  {metric.kind.value:9}  {metric.unit:7}  {metric.help}{labels}{pace}")
    return "\n".join(rows)


@click.command(help=__doc__)
@click.argument("pattern", default="")
@format_option("Output format; markdown generates docs/metrics.md.  [text]", ["markdown"])
def command(pattern: str, output: str) -> None:
    metrics = [metric for name, metric in sorted(CATALOGUE.items()) if pattern.lower() in name.lower()]
    if output == "json":
        for metric in metrics:
            click.echo(json.dumps(_object(metric)))
    elif output == "markdown":
        click.echo(page(metrics), nl=False)
    elif metrics:
        click.echo(_text(metrics))

"""Write or push Grafana dashboards and Prometheus rules"""

import re
from contextlib import closing
from pathlib import Path

import click

from cli.errors import CasstatError, echo, errors_as
from dashboards.grafana.dashboard_files import STORES

GROUP = "monitor"

PROVIDER = "provisioning/dashboards/casstat.yaml"
CHOICE = click.Choice(STORES)

command = click.Group(help=__doc__)


@command.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--for", "store", type=CHOICE, help="Store that the dashboards query (prometheus includes VictoriaMetrics).  [both]"
)
@click.option("--job", metavar="NAME", help="Prometheus job that scrapes the agents, for the rules.  [casstat]")
@click.option(
    "--runbooks",
    metavar="URL",
    callback=lambda _context, _option, url: _folder_url(url),
    help="Base URL of the runbooks, for the alerts' runbook_url annotation.  [no annotation]",
)
def write(folder: Path, store: str | None, job: str | None, runbooks: str) -> None:
    """Write dashboards, provisioning and rules to a directory

    \b
      DIR/prometheus/*.json                     dashboards for Prometheus
      DIR/influxdb/*.json                       dashboards for InfluxDB
      DIR/provisioning/dashboards/casstat.yaml  for Grafana's provisioning
      DIR/rules/*.yml                           alerts and recording rules for Prometheus

    VictoriaMetrics uses the files for Prometheus. Existing files with these names are replaced.
    """  # noqa: D301 - click keeps the line breaks after a backspace
    from cli.parameters.recording_options import output_folder
    from dashboards.grafana import dashboard_files
    from dashboards.rules.alert import JOB
    from dashboards.rules.rule_files import rule_files

    stores = (store,) if store else STORES
    texts = {f"{kind}/{name}": text for kind in stores for name, text in dashboard_files.packaged_dashboards(kind)}
    if "prometheus" in stores:
        texts |= {f"rules/{name}": text for name, text in rule_files(runbooks, job or JOB)}
    texts[PROVIDER] = dashboard_files.provider([folder.absolute() / kind for kind in stores])
    with output_folder(folder):
        for name, text in texts.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            echo(path)


@command.command()
@click.argument("url")
@click.option(
    "--for",
    "store",
    type=CHOICE,
    default="prometheus",
    help="Store that the dashboards query (prometheus includes VictoriaMetrics).  [prometheus]",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    required=True,
    help="File with a service account token or user:password (mode 0600).",
)
@click.option(
    "--ca",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="PEM file of trusted CA certificates for https.  [system CAs]",
)
def push(url: str, store: str, token_file: Path, ca: Path | None) -> None:
    """Push the dashboards to a Grafana server

    The dashboards go into the Grafana folder "casstat" and replace those with the same UIDs. URL is Grafana's base
    URL, such as http://localhost:3000.
    """
    from cli.parameters.access_options import password_in, warn_if_plain
    from collector.http.access import AccessError
    from dashboards.grafana import dashboard_files
    from dashboards.grafana.dashboard_files import Grafana, GrafanaError

    dashboards = [text for _, text in dashboard_files.packaged_dashboards(store)]
    try:
        with (
            errors_as(CasstatError, GrafanaError),
            closing(Grafana(url, password_in(token_file, "--token-file"), ca)) as grafana,
        ):
            warn_if_plain("Grafana's credentials", url)
            for address in grafana.push(dashboards):
                echo(address)
    except AccessError as error:
        raise click.UsageError(error.message({"ca": "--ca"})) from None


def _folder_url(url: str | None) -> str:
    """Return the runbooks' base URL without a trailing slash, or "" for None. Raises click.BadParameter."""
    if url and not re.match(r"(?:[\w+.-]+:)?//[^/]", url):
        raise click.BadParameter(f"{url!r} is not a URL (hint: pass one such as https://wiki.example/runbooks)")
    return (url or "").rstrip("/")

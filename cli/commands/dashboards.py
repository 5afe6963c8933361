"""Grafana's dashboards and Prometheus' rules: write them into a folder, or push the dashboards to a Grafana."""

import ssl
from pathlib import Path
from urllib.parse import urlsplit

import click

from cli.errors import CasstatError
from cli.safe_echo import echo

STORES = ("prometheus", "influxdb")
PROVIDER = "provisioning/dashboards/casstat.yaml"
CHOICE = click.Choice(STORES)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Grafana's dashboards and Prometheus' rules: write them into a folder, or push the dashboards to a Grafana."""


@command.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--for", "store", type=CHOICE, help="Only those for this store; VictoriaMetrics is one like Prometheus.")
@click.option(
    "--job", metavar="NAME", help="Name of the job that scrapes the agents, for the rules.  [default: casstat]"
)
@click.option(
    "--runbooks",
    metavar="URL",
    callback=lambda _context, _option, url: _folder_url(url),
    help="Base URL of the runbooks, for the alerts' annotation runbook_url; without it alerts have none.",
)
def write(folder: Path, store: str | None, job: str | None, runbooks: str) -> None:
    """Write the dashboards and the rules into DIR, and what has a Grafana on this machine find them there.

    \b
      DIR/prometheus/*.json, DIR/influxdb/*.json    the dashboards
      DIR/provisioning/dashboards/casstat.yaml      for Grafana's folder provisioning/dashboards
      DIR/rules/*.yml                               for Prometheus and VictoriaMetrics: alerts

    What is there under these names is replaced.
    """  # noqa: D301 - a backspace is click's word for lines that stay as they are
    from cli.parameters.output_folder import folder_for
    from dashboards.grafana import dashboard_files
    from dashboards.rules.alert import JOB
    from dashboards.rules.rule_files import rule_files

    stores = (store,) if store else STORES
    texts = {f"{each}/{name}": text for each in stores for name, text in dashboard_files.boards(each)}
    if "prometheus" in stores:
        texts |= {f"rules/{name}": text for name, text in rule_files(runbooks, job or JOB)}
    texts[PROVIDER] = dashboard_files.provider([folder.absolute() / each for each in stores])
    with folder_for(folder):
        for name, text in texts.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            echo(path)


@command.command()
@click.argument("url")
@click.option(
    "--for", "store", type=CHOICE, default="prometheus", help="Those for this store.  [prometheus: VictoriaMetrics too]"
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    required=True,
    help="Holds the token of a service account, or user:password; for you alone (chmod 600).",
)
@click.option(
    "--ca",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Whom to trust for https, in PEM form.  [whom the system trusts]",
)
def push(url: str, store: str, token_file: Path, ca: Path | None) -> None:
    """Push the dashboards to the Grafana at URL, into its folder "casstat"; those that are there are replaced.

    URL is what its pages begin with, such as http://localhost:3000.
    """
    from dashboards.grafana import dashboard_files
    from dashboards.grafana.upload import Grafana, GrafanaError

    boards = [text for _, text in dashboard_files.boards(store)]
    try:
        grafana = Grafana(url, _secret(token_file), _tls(ca))
        try:
            for address in grafana.push(boards):
                echo(address)
        finally:
            grafana.close()
    except GrafanaError as error:
        raise CasstatError(str(error)) from None


def _folder_url(url: str | None) -> str:
    """Return the URL of a folder without its last slash; "" for none."""
    if url and not urlsplit(url).netloc:
        raise click.BadParameter(f"{url!r} is no URL such as https://wiki.example/runbooks")
    return (url or "").rstrip("/")


def _secret(path: Path) -> str:
    from collector.secrets import SecretError, read_password

    try:
        return read_password(path)
    except SecretError as error:
        raise click.UsageError(f"--token-file: {error}") from None


def _tls(ca: Path | None) -> ssl.SSLContext:
    from collector.http.tls import client_context
    from collector.jolokia.access import Access, AccessError

    try:
        return client_context(Access(ca=ca))
    except AccessError as error:
        raise click.UsageError(str(error).replace("--jolokia-ca", "--ca")) from None

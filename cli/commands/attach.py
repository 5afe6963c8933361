"""Attach Jolokia to a Cassandra that runs, without restarting it, and take it away again."""

import ipaddress
import os
from pathlib import Path

import click

from cli.attach.attach_steps import Task
from cli.attach.jolokia_agent_options import Agent
from cli.attach.target_process import chosen
from collector.host.cassandra_processes import local_nodes
from collector.secrets import SecretError, read_password

_FILE = click.Path(path_type=Path)


def _address(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    try:
        return str(ipaddress.ip_address("127.0.0.1" if value == "localhost" else value.strip("[]")))
    except ValueError:
        raise click.BadParameter(f"'{value}' is no address such as 127.0.0.1") from None


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("pid", type=click.IntRange(min=1), required=False)
@click.option("--jar", type=_FILE, required=True, help="Jolokia's JVM agent, of version 1.7 or 2.")
@click.option("--host", default="127.0.0.1", callback=_address, help="The address to listen on.  [127.0.0.1]")
@click.option("--port", type=click.IntRange(1, 65535), default=8778, help="The port to listen on.  [8778]")
@click.option("--user", default="", help="Let in this user only; needs --password-file.")
@click.option("--password-file", type=_FILE, metavar="FILE", help="Holds that password, for you alone (chmod 600).")
@click.option("--detach", is_flag=True, help="Take it away again.")
def command(
    pid: int | None, jar: Path, host: str, port: int, user: str, password_file: Path | None, detach: bool
) -> None:
    """Attach Jolokia to the Cassandra that runs on this machine as process PID (needed where there are several).

    What is attached stays until the node ends. Through it the node can be read, but not changed: by everybody on
    this machine, unless --user says who. An address that others can reach needs a user; passwords travel
    unencrypted there. Run it as root, or as Cassandra's own user.
    """
    agent = Agent(host, port, user, _password(user, password_file))
    if not agent.is_private and not user:
        raise click.UsageError(f"others can reach {host}: say whom to let in with --user and --password-file")
    here = local_nodes()
    task = Task(jar.absolute(), chosen(here, pid), here, os.environ)
    click.echo(task.detach() if detach else task.attach(agent, password_file))


def _password(user: str, path: Path | None) -> str:
    if bool(user) != bool(path):
        raise click.UsageError("--user and --password-file go together")
    if path is None:
        return ""
    try:
        return read_password(path)
    except SecretError as error:
        raise click.UsageError(f"--password-file: {error}") from None

"""Attach Jolokia to a running Cassandra without a restart

PID is required if several Cassandra processes run on this machine. Jolokia stays attached until the node stops.
It allows reads but no changes. Without --user, anyone on this machine can read metrics. Addresses other than
loopback require --user; passwords then travel unencrypted. Run the command as root or as Cassandra's user.
"""

import ipaddress
import os
from pathlib import Path

import click

from cli.errors import CasstatError, errors_as
from cli.line.node_selection import LineSettings, nodes_here
from cli.parameters.access_options import TRUSTED_USER, JolokiaSettings, password_in
from cli.setup.attach.attach_steps import Agent, Task
from cli.setup.attach.target_process import chosen
from cli.setup.demo.java_runtime import POLICY_FILE
from exporters.api.sockets import ListenError, parse_address

GROUP = "watch"

LISTEN = "127.0.0.1:8778"
_FILE = click.Path(path_type=Path)


def _address(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    try:
        return str(ipaddress.ip_address("127.0.0.1" if value == "localhost" else value.strip("[]")))
    except ValueError:
        raise click.BadParameter(f"'{value}' is not an IP address such as 127.0.0.1") from None


def _listen(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, int]:
    with errors_as(click.BadParameter, ListenError):
        host, port = parse_address(value)
    if not host or not port:
        raise click.BadParameter(f"'{value}' is not an address and a port from 1 to 65535, such as {LISTEN}")
    return _address(context, parameter, host), port


def _print_policy(context: click.Context, _parameter: click.Parameter, is_given: bool) -> None:
    if is_given:
        click.echo(POLICY_FILE.read_text(), nl=False)
        context.exit()


@click.command(help=__doc__)
@click.argument("pid", type=click.IntRange(min=1), required=False)
@click.option("--jar", type=_FILE, metavar="FILE", required=True, help="Jolokia's JVM agent, version 1.7 or 2.")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=LISTEN,
    callback=_listen,
    help=f"Address for Jolokia to listen on.  [{LISTEN}]",
)
@click.option("--host", hidden=True, callback=lambda *given: None if given[-1] is None else _address(*given))
@click.option("--port", hidden=True, type=click.IntRange(1, 65535))
@click.option("--user", default="", metavar="NAME", help="User name that clients must present.")
@click.option("--password-file", type=_FILE, metavar="FILE", help="File with that user's password (mode 0600).")
@click.option(
    "--print-policy",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_policy,
    help="Print Jolokia's read-only policy, for nodes that load Jolokia when they start, and exit.",
)
@click.option("--detach", is_flag=True, help="Detach Jolokia.")
@TRUSTED_USER
def command(
    pid: int | None,
    jar: Path,
    listen: tuple[str, int],
    host: str | None,
    port: int | None,
    user: str,
    password_file: Path | None,
    detach: bool,
    trusted_user: tuple[str, ...],
) -> None:
    # --host and --port are the old form of --listen.
    agent = Agent(host or listen[0], port or listen[1], user, _password(user, password_file))
    if not agent.is_private and not user:
        raise click.UsageError(f"{agent.host} is not a loopback address (hint: use --user and --password-file)")
    found = nodes_here(LineSettings(jolokia=JolokiaSettings(trusted_user=trusted_user)))
    # A PID names a process, whoever its user is.
    here = [*found.nodes, *(node for node in found.others if node.pid == pid)]
    if not here and (message := found.untrusted_message()):
        raise CasstatError(message)
    task = Task(jar.absolute(), chosen(here, pid), here, os.environ)
    click.echo(task.detach() if detach else task.attach(agent, password_file))


def _password(user: str, path: Path | None) -> str:
    if bool(user) != bool(path):
        raise click.UsageError("--user and --password-file must be used together")
    return "" if path is None else password_in(path, "--password-file")

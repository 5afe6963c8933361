"""The options for access to casstat agents (credentials, TLS), shared by several commands."""

import functools
import os
import ssl
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from cli.parameters.jolokia_options import AGENT, JolokiaSettings, access_errors, access_from, warn_if_plain
from cli.parameters.parameter_types import with_options
from collector.agents.addresses import NodeAddress
from collector.http.access import Access, client_context

PASSWORD = "CASSTAT_AGENT_PASSWORD"  # noqa: S105 - name of an environment variable
NAMES = ("user", "password_file", "ca", "cert", "key")
_FILE = click.Path(path_type=Path)


def _option(flag: str, metavar: str, text: str, kind: Any = None) -> Any:
    variable = f"CASSTAT_AGENT_{flag.replace('-', '_').upper()}"
    return click.option(f"--agent-{flag}", metavar=metavar, type=kind, envvar=variable, help=text)


OPTIONS = (
    _option("user", "NAME", "User name for the agents (requires a password)."),
    _option("password-file", "FILE", f"File with that user's password (mode 0600).  [${PASSWORD}]", _FILE),
    _option("ca", "FILE", "PEM file of trusted CA certificates for https.  [system CAs]", _FILE),
    _option("cert", "FILE", "PEM file with the client certificate for the agents.", _FILE),
    _option("key", "FILE", "PEM file with the unencrypted private key of the certificate.  [certificate file]", _FILE),
)


def agent_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command; it receives them as a single argument `agent` of type JolokiaSettings."""

    @functools.wraps(function)
    def with_settings(*arguments: Any, **options: Any) -> Any:
        values = {f"jolokia_{name}": options.pop(f"agent_{name}") for name in NAMES}
        return function(*arguments, agent=JolokiaSettings(**values), **options)

    return with_options(OPTIONS, with_settings)


def warn_of_agents(access: Access, addresses: Iterable[NodeAddress]) -> None:
    """Print a warning for each agent whose credentials are sent unencrypted to another machine."""
    for address in addresses if access.user else ():
        if address.is_agent and address.tunnel is None:
            warn_if_plain("the agent's credentials", address.url)


def agent_access(settings: JolokiaSettings, environ: Mapping[str, str] = os.environ) -> tuple[Access, ssl.SSLContext]:
    """Return the credentials and the TLS context for agents. Raises click.UsageError."""
    with access_errors(AGENT):
        access = access_from(settings, environ, AGENT, PASSWORD)
        return access, client_context(access)

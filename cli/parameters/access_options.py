"""The options for access to nodes, through Jolokia, and to casstat's agents: URL, credentials, TLS, trusted users.

Also advice when the access fails, and warnings about credentials that are sent unencrypted.
"""

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import click

from cli.errors import errors_as, note
from cli.parameters.parameter_types import with_options
from collector.file_access import SecretError, read_password
from collector.http.access import Access, AccessError, Hint, Reason, client_context, is_this_machine
from collector.node.jolokia.client import JolokiaAccess

if TYPE_CHECKING:
    import ssl

    from collector.agents.addresses import NodeAddress
    from collector.http.access import CheckPeer
    from collector.node.jolokia.client import Jolokia

JOLOKIA, AGENT = "--jolokia-", "--agent-"
_HINTS = {
    Reason.CREDENTIALS_REQUIRED: "use {user} and {password}",
    Reason.CREDENTIALS_REJECTED: "check {user} and {password}",
    Reason.REDIRECTED: "use the final URL",
    Reason.TLS_REQUIRED: "use an https:// URL",
    Reason.TLS_SUSPECTED: "if the server speaks TLS, use an https:// URL",
    Reason.PLAIN_HTTP: "use an http:// URL",
    Reason.PLAIN_HTTP_SUSPECTED: "if the server does not speak TLS, use an http:// URL",
    Reason.UNKNOWN_AUTHORITY: "specify the CA certificate with {ca}",
    Reason.WRONG_HOST: "use a URL with a name or address from the certificate",
    Reason.CLIENT_CERTIFICATE_REQUIRED: "use {certificate} and {key}",
    Reason.CLIENT_CERTIFICATE_REJECTED: "check {certificate}",
    Reason.NOT_A_PROXY: "leave out {target}, or enable Jolokia's proxy mode",
    Reason.TARGET_CREDENTIALS: "use {target_user} and {target_password}",
    Reason.TARGET_FORBIDDEN: "allow the target with Jolokia's jsr160ProxyAllowedTargets setting",
    Reason.TARGET_UNREACHABLE: "check {target}",
    Reason.UNTRUSTED: "name the address with --jolokia, or its user with --trusted-user",
}
_AGENT_HINTS = {Reason.FORBIDDEN: "configure passwords for the agent, or start it with --allow-anonymous-reads"}
# The parameters of a sink's URL that name files with credentials.
SECRET_PARAMETERS = {"token_file", "basic_auth_file"}
# The environment variables with passwords.
PASSWORD, AGENT_PASSWORD = "CASSTAT_JOLOKIA_PASSWORD", "CASSTAT_AGENT_PASSWORD"
_FILE = click.Path(path_type=Path)
TRUSTED_USER = click.option(
    "--trusted-user",
    metavar="NAME",
    multiple=True,
    envvar="CASSTAT_TRUSTED_USER",
    help="User, besides root, cassandra and the current one, whose Cassandra is trusted with credentials (repeatable).",
)


def option_names(prefix: str) -> Mapping[str, str]:
    """Return the option that sets each field of `Access` and `JolokiaAccess`, such as "--jolokia-ca" for "ca"."""
    return {
        "user": f"{prefix}user",
        "password": f"{prefix}password-file",
        "ca": f"{prefix}ca",
        "certificate": f"{prefix}cert",
        "key": f"{prefix}key",
        "target": f"{prefix}target",
        "target_user": f"{prefix}target-user",
        "target_password": f"{prefix}target-password-file",
    }


@contextmanager
def access_errors(prefix: str) -> Iterator[None]:
    """Turn an AccessError into a click.UsageError, in which option names begin with `prefix`."""
    try:
        yield
    except AccessError as error:
        raise click.UsageError(error.message(option_names(prefix))) from None


def hint_for(prefix: str) -> Hint:
    """Return a function that maps the reason for a failure to a hint, in which option names begin with `prefix`."""
    names = option_names(prefix)
    hints = {**_HINTS, **_AGENT_HINTS} if prefix == AGENT else _HINTS
    return lambda reason: hints.get(reason, "").format_map(names)


def warn_if_plain(what: str, url: str) -> None:
    """Print a warning if credentials for `url` are sent unencrypted to another machine; once for each address."""
    parts = urlsplit(url)
    if parts.scheme.rpartition("+")[2] == "http" and not is_this_machine(parts.hostname or ""):
        _warn(what, f"{parts.scheme}://{parts.netloc}")


def warn_of_agents(access: Access, addresses: "Iterable[NodeAddress]") -> None:
    """Print a warning for each agent whose credentials are sent unencrypted to another machine."""
    for address in addresses if access.user else ():
        if address.is_agent and address.tunnel is None:
            warn_if_plain("the agent's credentials", address.url)


def warn_of_sink(url: str) -> None:
    """Print a warning if a sink sends credentials unencrypted to another machine."""
    parameters = dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))
    if not SECRET_PARAMETERS.isdisjoint(parameters):
        warn_if_plain("the sink's credentials", url)


# A client may be created again and again, even while a screen is shown.
@functools.cache
def _warn(what: str, address: str) -> None:
    note(f"{address}: {what} are sent unencrypted (hint: use https)")


@dataclass(frozen=True)
class JolokiaSettings:
    """The Jolokia options; None for an option that was not given.

    trusted_user  users whose processes are trusted as the node, besides root, casstat's own user and `cassandra`.
    """

    jolokia: str | None = None
    jolokia_user: str | None = None
    jolokia_password_file: Path | None = None
    jolokia_ca: Path | None = None
    jolokia_cert: Path | None = None
    jolokia_key: Path | None = None
    jolokia_target: str | None = None
    jolokia_target_user: str | None = None
    jolokia_target_password_file: Path | None = None
    trusted_user: tuple[str, ...] = ()


def _option(flag: str, metavar: str, text: str, kind: Any = None) -> Any:
    # `envvar` is explicit so that the variable is the same for every command; otherwise, click would insert the
    # command's name.
    return click.option(
        flag, metavar=metavar, type=kind, envvar=f"CASSTAT_{flag[2:].replace('-', '_').upper()}", help=text
    )


def _access(prefix: str, server: str, password: str) -> tuple[Any, ...]:
    """Return the options for access to a kind of server; `password` describes that of its user."""
    key = "PEM file with the unencrypted private key of the certificate.  [certificate file]"
    return (
        _option(f"{prefix}user", "NAME", f"User name for {server} (requires a password)."),
        _option(f"{prefix}password-file", "FILE", f"File with {password}", _FILE),
        _option(f"{prefix}ca", "FILE", "PEM file of trusted CA certificates for https.  [system CAs]", _FILE),
        _option(f"{prefix}cert", "FILE", f"PEM file with the client certificate for {server}.", _FILE),
        _option(f"{prefix}key", "FILE", key, _FILE),
    )


JOLOKIA_ACCESS = _access(JOLOKIA, "Jolokia", f"the Jolokia password (mode 0600).  [${PASSWORD}]")
JOLOKIA_OPTIONS = (
    _option("--jolokia", "URL", "URL of the node's Jolokia.  [detected, else http://127.0.0.1:8778/jolokia]"),
    *JOLOKIA_ACCESS,
    _option("--jolokia-target", "HOST:PORT", "JMX address or service URL of the node (if Jolokia runs as a proxy)."),
    _option("--jolokia-target-user", "NAME", "JMX user name for that node (requires a password)."),
    _option("--jolokia-target-password-file", "FILE", "File with that user's password (mode 0600).", _FILE),
    TRUSTED_USER,
)
AGENT_OPTIONS = _access(AGENT, "the agents", f"that user's password (mode 0600).  [${AGENT_PASSWORD}]")
# The fields of JolokiaSettings by the names of the options.
_FIELDS = {field.name: field.name for field in fields(JolokiaSettings)}
_AGENT_FIELDS = {f"agent_{name}": f"jolokia_{name}" for name in ("user", "password_file", "ca", "cert", "key")}


def settings_from(options: dict[str, Any], names: Mapping[str, str] = _FIELDS) -> JolokiaSettings:
    """Remove the options with these names from those of a command; return them."""
    return JolokiaSettings(**{field: options.pop(name) for name, field in names.items() if name in options})


def given_options(settings: JolokiaSettings, prefix: str = JOLOKIA) -> Iterator[tuple[str, Any]]:
    """Yield the options with values that are not the default, once for each value; option names begin with `prefix`."""
    for field in fields(settings):
        given = getattr(settings, field.name)
        flag = f"--{field.name.replace('_', '-')}".replace(JOLOKIA, prefix)
        for value in given if isinstance(given, tuple) else (given,):
            if value is not None:
                yield flag, value


def _with_settings(
    options: Sequence[Callable[..., Any]],
    function: Callable[..., Any],
    argument: str = "jolokia",
    names: Mapping[str, str] = _FIELDS,
) -> Callable[..., Any]:
    """Add options to a command, which receives them as a single argument of type JolokiaSettings."""

    @functools.wraps(function)
    def with_settings(*arguments: Any, **options: Any) -> Any:
        settings = settings_from(options, names)
        return function(*arguments, **{argument: settings}, **options)

    return with_options(options, with_settings)


def jolokia_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for Jolokia to a command; it receives them as `jolokia`."""
    return _with_settings(JOLOKIA_OPTIONS, function)


def agent_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for agents to a command; it receives them as `agent`."""
    return _with_settings(AGENT_OPTIONS, function, "agent", _AGENT_FIELDS)


def access_options(function: Callable[..., Any], *others: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for agents and, for nodes without one, those for Jolokia and `others`."""
    return agent_options(_with_settings((*JOLOKIA_ACCESS, *others), function))


def access_from(settings: JolokiaSettings, environ: Mapping[str, str], prefix: str = JOLOKIA) -> JolokiaAccess:
    """Return the access that the settings describe, with passwords from files or from the environment.

    Option names begin with `prefix`. Raises click.UsageError.
    """
    names, variable = option_names(prefix), AGENT_PASSWORD if prefix == AGENT else PASSWORD
    if settings.jolokia_password_file and not settings.jolokia_user:
        raise click.UsageError(f"{names['password']} requires {names['user']}")
    if settings.jolokia_target_password_file and not settings.jolokia_target_user:
        raise click.UsageError(f"{names['target_password']} requires {names['target_user']}")
    password = target_password = ""
    if settings.jolokia_user:
        password = _password(names["user"], names["password"], settings.jolokia_password_file, variable, environ)
    if settings.jolokia_target_user:
        file = settings.jolokia_target_password_file
        target_password = _password(names["target_user"], names["target_password"], file, "", environ)
    with access_errors(prefix):
        return JolokiaAccess(
            settings.jolokia_user or "",
            password,
            settings.jolokia_ca,
            settings.jolokia_cert,
            settings.jolokia_key,
            settings.jolokia_target or "",
            settings.jolokia_target_user or "",
            target_password,
            hint=hint_for(prefix),
        )


def agent_access(settings: JolokiaSettings, environ: Mapping[str, str] = os.environ) -> "tuple[Access, ssl.SSLContext]":
    """Return the credentials and the TLS context for agents. Raises click.UsageError."""
    access = access_from(settings, environ, AGENT)
    with access_errors(AGENT):
        return access, client_context(access)


def connect(
    url: str, settings: JolokiaSettings, environ: Mapping[str, str] = os.environ, check_peer: "CheckPeer | None" = None
) -> "Jolokia":
    """Return a client for the Jolokia at `url`; it does not connect yet. Raises click.UsageError.

    `check_peer` decides whether the server may receive anything.
    """
    # Imported here because --help and usage errors must not load the HTTP client.
    from collector.node.jolokia.client import Jolokia, UrlError

    access = access_from(settings, environ)
    with errors_as(functools.partial(click.BadParameter, param_hint="--jolokia"), UrlError), access_errors(JOLOKIA):
        jolokia = Jolokia(url, access, check_peer)
    if access.user or access.target_user:
        warn_if_plain("Jolokia's credentials", jolokia.url)
    return jolokia


def _password(user_flag: str, flag: str, path: Path | None, variable: str, environ: Mapping[str, str]) -> str:
    """Return the password from the file or, if none is given, from the environment. Raises click.UsageError."""
    if path is None:
        if password := environ.get(variable, ""):
            return password
        alternative = f", or set {variable}" if variable else ""
        raise click.UsageError(f"{user_flag} requires a password (hint: use {flag}{alternative})")
    return password_in(path, flag)


def password_in(path: Path, option: str) -> str:
    """Return the password in the file that an option names. Raises click.UsageError."""
    with errors_as(lambda text: click.UsageError(f"{option}: {text}"), SecretError):
        return read_password(path)

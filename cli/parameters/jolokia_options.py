"""The options for the URL, credentials and TLS of a node's Jolokia, shared by several commands."""

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collector.jolokia.access import Access, AccessError
from collector.secrets import SecretError, read_password

if TYPE_CHECKING:
    from collector.jolokia.client import Jolokia

PASSWORD = "CASSTAT_JOLOKIA_PASSWORD"  # noqa: S105 - name of an environment variable

_FILE = click.Path(path_type=Path)


@dataclass(frozen=True)
class JolokiaSettings:
    """The Jolokia options, None if not given."""

    jolokia: str | None = None
    jolokia_user: str | None = None
    jolokia_password_file: Path | None = None
    jolokia_ca: Path | None = None
    jolokia_cert: Path | None = None
    jolokia_key: Path | None = None
    jolokia_target: str | None = None
    jolokia_target_user: str | None = None
    jolokia_target_password_file: Path | None = None


def _option(flag: str, metavar: str, text: str, kind: Any = None) -> Any:
    # An explicit environment variable is the same for every command; click would add the name of the command.
    return click.option(
        flag, metavar=metavar, type=kind, envvar=f"CASSTAT_{flag[2:].replace('-', '_').upper()}", help=text
    )


OPTIONS = (
    _option("--jolokia", "URL", "URL of the node's Jolokia.  [detected, else http://127.0.0.1:8778/jolokia]"),
    _option("--jolokia-user", "NAME", "User name for Jolokia (requires a password)."),
    _option(
        "--jolokia-password-file",
        "FILE",
        f"File with the Jolokia password (mode 0600).  [${PASSWORD}]",
        _FILE,
    ),
    _option("--jolokia-ca", "FILE", "File of trusted CA certificates for https, PEM.  [system CAs]", _FILE),
    _option("--jolokia-cert", "FILE", "File with the client certificate for Jolokia, PEM.", _FILE),
    _option(
        "--jolokia-key",
        "FILE",
        "File with the unencrypted private key of the certificate, PEM.  [certificate file]",
        _FILE,
    ),
    _option("--jolokia-target", "HOST:PORT", "JMX address or service URL of the node (if Jolokia runs as a proxy)."),
    _option("--jolokia-target-user", "NAME", "JMX user name of that node (requires a password)."),
    _option("--jolokia-target-password-file", "FILE", "File with that user's password (mode 0600).", _FILE),
)


def jolokia_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which gets them as one argument `jolokia` of type JolokiaSettings."""

    @functools.wraps(function)
    def with_settings(*arguments: Any, **options: Any) -> Any:
        values = {field.name: options.pop(field.name) for field in fields(JolokiaSettings)}
        return function(*arguments, jolokia=JolokiaSettings(**values), **options)

    command: Callable[..., Any] = with_settings
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def access_from(settings: JolokiaSettings, environ: Mapping[str, str]) -> Access:
    """Return the credentials and TLS files, with passwords read from their files.

    Without a file, Jolokia's password comes from `environ`. Raises click.UsageError.
    """
    if settings.jolokia_password_file and not settings.jolokia_user:
        raise click.UsageError("--jolokia-password-file needs --jolokia-user")
    if settings.jolokia_target_password_file and not settings.jolokia_target_user:
        raise click.UsageError("--jolokia-target-password-file needs --jolokia-target-user")
    password = target_password = ""
    if settings.jolokia_user:
        password = _password("--jolokia-password-file", settings.jolokia_password_file, environ.get(PASSWORD, ""))
    if settings.jolokia_target_user:
        target_password = _password("--jolokia-target-password-file", settings.jolokia_target_password_file, "")
    try:
        return Access(
            settings.jolokia_user or "",
            password,
            settings.jolokia_ca,
            settings.jolokia_cert,
            settings.jolokia_key,
            settings.jolokia_target or "",
            settings.jolokia_target_user or "",
            target_password,
        )
    except AccessError as error:
        raise click.UsageError(str(error)) from None


def connect(url: str, settings: JolokiaSettings, environ: Mapping[str, str] = os.environ) -> "Jolokia":
    """Return a client for the Jolokia at `url` without connecting yet. Raises click.UsageError."""
    # Imported late: --help and usage errors must not load the HTTP client.
    from collector.jolokia.client import Jolokia, UrlError

    access = access_from(settings, environ)
    try:
        return Jolokia(url, access)
    except UrlError as error:
        raise click.BadParameter(str(error), param_hint="--jolokia") from None
    except AccessError as error:
        raise click.UsageError(str(error)) from None


def _password(flag: str, path: Path | None, default: str) -> str:
    if path is None:
        if not default:
            variable = f", or set {PASSWORD}" if flag == "--jolokia-password-file" else ""
            raise click.UsageError(f"{flag.replace('password-file', 'user')} needs a password: give {flag}{variable}")
        return default
    try:
        return read_password(path)
    except SecretError as error:
        raise click.UsageError(f"{flag}: {error}") from None

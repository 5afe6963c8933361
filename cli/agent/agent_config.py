"""Reads the agent's settings from the command line, the environment and a TOML file, in this order of precedence.

Each setting is an option of the command. The option's name is the setting's key in the file. The environment variable
is CASSTAT_ followed by the name in upper case. `printed` yields the effective settings as such a file.
"""

import difflib
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from cli.errors import CasstatError
from cli.line.node_selection import Contact, LineSettings, TransportFactory, first_contact
from cli.parameters.parameter_types import Duration
from collector.file_access import file_errors
from collector.http.access import masked_url
from collector.node.node_sampler import NodeSampler

STATE = Path("/var/lib/casstat")
# Settings that the agent reloads after SIGHUP; changes to other settings require a restart.
RELOADED = ("to", "buckets", "series_limit", "node_metrics")
EVERY_S = 30.0
MAX_BYTES = 1 << 20
# Options that cannot be set in the configuration file.
NO_SETTINGS = frozenset({"config", "print_config", "help"})
ARGUMENTS = "casstat.arguments"


@dataclass(frozen=True)
class AgentSettings:
    """The options of `casstat agent`; `line` holds those that it shares with the default command."""

    line: LineSettings = field(default_factory=LineSettings)
    interval: float = 1.0
    tables: int = 10
    journal_dir: Path = STATE
    journal_limit: int | None = None
    journal_sync: str = "frame"
    listen: str = ""
    allow_anonymous_reads: bool = False
    allow_host: tuple[str, ...] = ()
    web_config_file: Path | None = None
    to: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    series_limit: int = 10_000
    node_metrics: bool = True


def journal_folder(environ: Mapping[str, str]) -> Path:
    """Return the default journal directory: systemd's, else /var/lib/casstat if writable, else one for the user."""
    if given := environ.get("STATE_DIRECTORY", "").partition(":")[0]:
        return Path(given)
    if os.access(STATE, os.W_OK) or (not STATE.exists() and os.access(STATE.parent, os.W_OK)):
        return STATE
    return Path(environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "casstat"


class TransportFinder:
    """Retries all transports in its own thread."""

    def __init__(
        self,
        factories: Callable[[], Iterable[tuple[str, TransportFactory]]],
        make_sampler: Callable[[str, TransportFactory], NodeSampler],
        monotonic_s: Callable[[], float],
    ) -> None:
        """`factories` yields the transports to try; `make_sampler` creates a sampler for one of them."""
        self._factories = factories
        self._make_sampler = make_sampler
        self._monotonic_s = monotonic_s
        self._answered_s = monotonic_s()
        self.running: threading.Thread | None = None
        self._result: Contact | None = None

    def tick(self, *, answered: bool) -> Contact | None:
        """Process a tick; return the contact of a working transport if the node is not answering and one was found."""
        now_s = self._monotonic_s()
        if answered:
            self._answered_s = now_s
        if self.running is not None and self.running.is_alive():
            return None
        contact_result, self._result = self._result, None
        if contact_result is not None and contact_result.answered and not answered:
            return contact_result
        if contact_result is not None:
            contact_result.sampler.close()
        if now_s - self._answered_s >= EVERY_S:
            self._answered_s = now_s
            self.running = threading.Thread(target=self._search, name="finder", daemon=True)
            self.running.start()
        return None

    def _search(self) -> None:
        try:
            self._result = first_contact(self._factories(), self._make_sampler)
        except click.UsageError:
            # No transport is available yet.
            self._result = None


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def settings_of(command: click.Command) -> dict[str, click.Option]:
    """Return the command's options that are settings, keyed by name."""
    named = ((option.name, option) for option in command.params if isinstance(option, click.Option))
    return {name: option for name, option in named if name and name not in NO_SETTINGS}


class ConfiguredCommand(click.Command):
    """A command whose settings may also come from the file that --config names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and keep them for reloading the settings later.

        Raises CasstatError if a value in the settings file is invalid.
        """
        ctx.meta[ARGUMENTS] = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except click.BadParameter as error:
            name = error.param.name if error.param else None
            if name and ctx.get_parameter_source(name) is ParameterSource.DEFAULT_MAP:
                raise CasstatError(f"{ctx.params['config']}: '{name}': {error.message}") from None
            raise


def take_file(context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """Use a file's settings as defaults that the command line and the environment override. Raises CasstatError."""
    if path is not None:
        context.default_map = from_file(path, context.command)
    return path


def set_variable_names(command: click.Command) -> None:
    """Name each setting's environment variable after the setting."""
    for name, option in settings_of(command).items():
        option.envvar = f"CASSTAT_{name.upper()}"


def from_file(path: Path, command: click.Command) -> dict[str, Any]:
    """Return the settings in a TOML file, keyed by name. Raises CasstatError if the file is unreadable or invalid."""
    with file_errors(path, CasstatError), path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise CasstatError(f"{path}: larger than {MAX_BYTES >> 20} MiB")
    try:
        content: dict[str, Any] = tomllib.loads(data.decode())
    except ValueError as error:
        raise CasstatError(f"{path}: invalid TOML: {error}") from None
    table = settings_of(command)
    for key, value in content.items():
        if key not in table:
            raise CasstatError(f"{path}: unknown setting '{key}' (hint: {_nearest(key, table)})")
        _check(path, key, value, table[key])
    return content


def _nearest(key: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(key.replace("-", "_").lower(), known, 1, 0.5)
    return f"did you mean '{near[0]}'?" if near else f"choose from {', '.join(sorted(known))}"


def _check(path: Path, key: str, value: Any, option: click.Option) -> None:
    """Raise CasstatError if a value's type differs from the option's; click would silently convert the value."""
    kinds: tuple[type, ...] = (str,)
    expected = "a list of strings" if option.multiple else "a string"
    if option.is_flag:
        kinds, expected = (bool,), "true or false"
    elif isinstance(option.type, click.types.IntParamType):
        kinds, expected = (int,), "a whole number"
    elif isinstance(option.type, Duration):
        kinds, expected = (int, float, str), 'a number of seconds or a duration such as "30s"'
    elif option.name == "journal_limit":
        kinds, expected = (int, str), 'a size such as "2G"'
    values = value if option.multiple and isinstance(value, list) else [value]
    if option.multiple and not isinstance(value, list):
        raise CasstatError(f'{path}: \'{key}\' must be a list such as ["…", "…"]')
    if not all(isinstance(item, kinds) and (bool in kinds or not isinstance(item, bool)) for item in values):
        raise CasstatError(f"{path}: '{key}' must be {expected}, not {json.dumps(value, default=str)}")


def printed(context: click.Context) -> Iterator[str]:
    """Yield the effective settings as lines of a TOML file, each with its source; unset settings become comments."""
    names = {
        ParameterSource.COMMANDLINE: "command line",
        ParameterSource.ENVIRONMENT: "environment",
        ParameterSource.DEFAULT_MAP: "file",
    }
    for name in sorted(settings_of(context.command)):
        value = context.params[name]
        source = context.get_parameter_source(name)
        source_name = names.get(source, "default") if source else "default"
        if value in (None, "", ()):
            yield f"# {name} is not set"
        else:
            yield f"{name} = {_toml(name, value)}  # {source_name}"


def _toml(name: str, value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_toml(name, item) for item in value)}]"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    # JSON strings are valid TOML basic strings.
    return json.dumps(masked_url(str(value)), ensure_ascii=False)

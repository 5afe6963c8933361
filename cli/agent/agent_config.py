"""The agent's settings from its command line, the environment and a TOML file, in this order; all by one table.

The table is the command's own list of options: an option's name is its key in the file and, in capitals behind
CASSTAT_, its variable.
"""

import difflib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import click
from click.core import ParameterSource

from cli.errors import CasstatError
from cli.parameters.time_types import Duration

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LARGEST_BYTES = 1 << 20
# What is no setting, but says what the command is to do.
NO_SETTINGS = frozenset({"config", "print_config", "help"})
ARGUMENTS = "casstat.arguments"


def settings_of(command: click.Command) -> dict[str, click.Option]:
    """Return the table: every setting by its name."""
    named = ((option.name, option) for option in command.params if isinstance(option, click.Option))
    return {name: option for name, option in named if name and name not in NO_SETTINGS}


class ConfiguredCommand(click.Command):
    """A command whose settings may also stand in the file that its option --config names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and remember the arguments: they are parsed again when the settings are read again."""
        ctx.meta[ARGUMENTS] = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except click.BadParameter as error:
            name = error.param.name if error.param else None
            if name and ctx.get_parameter_source(name) is ParameterSource.DEFAULT_MAP:
                raise CasstatError(f"{ctx.params['config']}: '{name}': {error.message}") from None
            raise


def take_file(context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """Have the settings of a file stand behind those of the command line and the environment."""
    if path is not None:
        context.default_map = from_file(path, context.command)
    return path


def name_alike(command: click.Command) -> None:
    """Name each setting's variable after it, the same whatever command it is that has the option."""
    for name, option in settings_of(command).items():
        option.envvar = f"CASSTAT_{name.upper()}"


def from_file(path: Path, command: click.Command) -> dict[str, Any]:
    """Return what a TOML file says, by the names of the settings. Raises CasstatError."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise CasstatError(f"{path}: {error.strerror}") from None
    if len(data) > LARGEST_BYTES:
        raise CasstatError(f"{path}: is too large to be settings")
    try:
        found: dict[str, Any] = tomllib.loads(data.decode())
    except ValueError as error:
        raise CasstatError(f"{path}: is no TOML: {error}") from None
    table = settings_of(command)
    for key, value in found.items():
        if key not in table:
            raise CasstatError(f"{path}: there is no setting '{key}'{_nearest(key, table)}")
        _check(path, key, value, table[key])
    return found


def _nearest(key: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(key.replace("-", "_").lower(), known, 1, 0.5)
    return f": is '{near[0]}' meant?" if near else f"; there are {', '.join(sorted(known))}"


def _check(path: Path, key: str, value: Any, option: click.Option) -> None:
    """Refuse what is not of the option's shape: click would make a text of it. Raises CasstatError."""
    kinds: tuple[type, ...] = (str,)
    wanted = "a text"
    if option.is_flag:
        kinds, wanted = (bool,), "true or false"
    elif isinstance(option.type, click.types.IntParamType):
        kinds, wanted = (int,), "a whole number"
    elif isinstance(option.type, Duration):
        kinds, wanted = (int, float, str), 'a number of seconds or a duration such as "30s"'
    elif option.name == "journal_limit":
        kinds, wanted = (int, str), 'a size such as "2G"'
    values = value if option.multiple and isinstance(value, list) else [value]
    if option.multiple and not isinstance(value, list):
        raise CasstatError(f'{path}: \'{key}\' is a list: ["…", "…"]')
    if not all(isinstance(each, kinds) and (bool in kinds or not isinstance(each, bool)) for each in values):
        raise CasstatError(f"{path}: '{key}' is {wanted}, not {json.dumps(value, default=str)}")


def printed(context: click.Context) -> Iterator[str]:
    """Yield the lines of a TOML file that says what is in force, each with where it was said."""
    words = {
        ParameterSource.COMMANDLINE: "command line",
        ParameterSource.ENVIRONMENT: "environment",
        ParameterSource.DEFAULT_MAP: "file",
    }
    for name in sorted(settings_of(context.command)):
        value = context.params[name]
        source = context.get_parameter_source(name)
        said = words.get(source, "default") if source else "default"
        if value in (None, "", ()):
            yield f"# {name} is not set"
        else:
            yield f"{name} = {_toml(name, value)}  # {said}"


def _toml(name: str, value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_toml(name, each) for each in value)}]"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    # A basic string of TOML is what JSON's is.
    return json.dumps(masked(str(value)), ensure_ascii=False)


def masked(text: str) -> str:
    """Return a text without the password that a URL in it may hold."""
    parts = urlsplit(text)
    if "@" not in parts.netloc:
        return text
    return urlunsplit(parts._replace(netloc=f"***@{parts.netloc.rpartition('@')[2]}"))

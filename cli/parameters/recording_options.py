"""Options of commands that record or read recordings: `record`, paths and URLs, limits, output directories."""

import functools
import os
import re
import resource
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.errors import CasstatError
from cli.parameters.access_options import TRUSTED_USER, access_options
from cli.parameters.parameter_types import Command, Duration, run_name, size, with_options
from collector.printable import one_line
from collector.recording.header import MAX_MEMORY_BYTES, MAX_SERIES, TooManySeriesError
from collector.recording.object_store import is_object_url

if TYPE_CHECKING:
    from exporters.results.summary.conditions import Condition

STATM = Path("/proc/self/statm")
DATA_FIELD = 5
MESSAGE = "reading the recordings requires more than"
HINT = "read fewer nodes or a shorter time range, or raise --max-memory"
MIN_DURATION_S = 1.0
_PATH = click.Path(path_type=Path)


class ObjectUrl(str):
    """The URL of recordings in object storage."""

    __slots__ = ()


class RecordingPath(click.ParamType["Path | ObjectUrl"]):
    """A path, or a URL of object storage."""

    name = "path"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> "Path | ObjectUrl":
        return ObjectUrl(value) if is_object_url(str(value)) else Path(str(value))


def output_option(text: str, kind: Any = _PATH, *, required: bool = False) -> Callable[[Command], Command]:
    """Return the option -o, whose help is `text`, with the argument `folder`."""
    return click.option("-o", "--output", "folder", type=kind, metavar="DIR", required=required, help=text)


@contextmanager
def output_folder(folder: Path) -> Iterator[None]:
    """Create the directory and run the block; an OSError becomes a CasstatError with a one-line message."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise CasstatError(f"{error.filename or folder}: cannot write: {one_line(error.strerror or error)}") from None


def _secret_pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        # The pattern itself may be a secret.
        raise ValueError(f"not a regular expression: {getattr(error, 'msg', error)}") from None


redact_option = click.option(
    "--redact",
    type=_secret_pattern,
    multiple=True,
    metavar="REGEX",
    help="Also replace matches of REGEX, or its first group, in all that is written (repeatable).  [known forms]",
)


def read_limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command; it receives `max_series` and `max_memory`."""
    options = [
        click.option(
            "--max-series",
            type=click.IntRange(min=1),
            default=MAX_SERIES,
            help=f"Maximum number of series per node.  [{MAX_SERIES}]",
        ),
        click.option(
            "--max-memory",
            type=size,
            default=str(MAX_MEMORY_BYTES),
            metavar="SIZE",
            help=f"Maximum memory per process.  [{MAX_MEMORY_BYTES >> 30}G]",
        ),
    ]
    return with_options(options, command)


def read_limits(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command and limit its memory; it receives `max_series`. Must be the innermost decorator."""

    @functools.wraps(command)
    def with_limits(*arguments: Any, max_memory: int, **options: Any) -> Any:
        with memory_limit(max_memory):
            return command(*arguments, **options)

    return read_limit_options(with_limits)


@contextmanager
def memory_limit(limit_bytes: int, message: str = MESSAGE, hint: str = HINT) -> Iterator[None]:
    """Limit the memory of this process, and of each child process, to this process's current usage plus `limit_bytes`.

    Raises CasstatError if the block exceeds this limit, with a message that begins with `message` and has the hint, or
    if a recording exceeds its series limit.
    """
    if find_spec("numpy"):
        # Imported before usage is measured: numpy's threads reserve hundreds of megabytes on machines with many cores.
        import numpy as np  # noqa: F401
    before = resource.getrlimit(resource.RLIMIT_DATA)
    used = int(STATM.read_text().split()[DATA_FIELD]) * resource.getpagesize()
    allowed = [limit for limit in before if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(used + limit_bytes, *allowed, 1 << 62), before[1]))
    try:
        yield
    except (MemoryError, BrokenProcessPool):
        raise CasstatError(f"{message} {limit_bytes / (1 << 30):.3g}G of memory (hint: {hint})") from None
    except TooManySeriesError as error:
        raise CasstatError(f"{error} (hint: raise --max-series)") from None
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _tag(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ValueError(f"'{text}': expected KEY=VALUE")
    return key, value


def _line_pattern(text: str) -> re.Pattern[bytes]:
    try:
        return re.compile(os.fsencode(text))
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"'{text}' is not a regular expression: {error}") from None


def condition(text: str) -> "Condition":
    from exporters.results.summary.conditions import condition_of

    return condition_of(text)


class CommandAfterDashes(click.Command):
    """A click command that takes another command, as `ctx.obj`, after `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments before `--`, and keep those after it unchanged."""
        begin = args.index("--") if "--" in args else len(args)
        ctx.obj = tuple(args[begin + 1 :])
        rest = super().parse_args(ctx, args[:begin])
        if not ctx.obj and not ctx.resilient_parsing:
            hint = f"use '{ctx.info_name} [NODE]... -- COMMAND'"
            raise click.UsageError(f"no command given (hint: {hint})", ctx)
        return rest


_OPTIONS = {
    "client_hosts": click.option(
        "--client-host",
        "client_hosts",
        multiple=True,
        metavar="ssh://HOST",
        help="Run COMMAND on HOST instead of locally, with {host} and {index} filled in (repeatable).",
    ),
    "seeds": click.option(
        "--seed", "seeds", multiple=True, metavar="NODE", help="Record this agent's whole cluster (repeatable)."
    ),
    "name": click.option("--name", type=run_name, metavar="NAME", help="Name of the run.  [the command's name]"),
    "tags": click.option(
        "--tag", "tags", type=_tag, multiple=True, metavar="KEY=VALUE", help="Tag of the run (repeatable)."
    ),
    "duration": click.option(
        "--duration",
        type=Duration(MIN_DURATION_S),
        help="End COMMAND after this time, which counts as success.  [until it ends]",
    ),
    "warm_up": click.option(
        "--warm-up", type=Duration(), default=0.0, help="Initial period that the summary excludes.  [0s]"
    ),
    "cool_down": click.option(
        "--cool-down", type=Duration(), default=0.0, help="Time to keep recording after the command ends.  [0s]"
    ),
    "folder": output_option("Directory to create for the run.  [casstat-runs/DATE-TIME-NAME]"),
    "mark_regex": click.option(
        "--mark-regex",
        type=_line_pattern,
        metavar="PATTERN",
        help="Mark the run at each line of output that matches; a mark begins a phase.",
    ),
    "fail_if": click.option(
        "--fail-if",
        type=condition,
        multiple=True,
        metavar="CONDITION",
        help="Exit with status 1 if a condition such as 'read_p99_ms > 10' holds in a phase (repeatable).",
    ),
    "clients": click.option(
        "--client",
        "clients",
        multiple=True,
        metavar="[FORMAT[,OPTION=VALUE]:]FILE",
        help="Result that COMMAND writes, or a pattern of several, to import at the end (repeatable)."
        "  [recognised output]",
    ),
    "serve": click.option(
        "--serve",
        metavar="[HOST:]PORT",
        help="Serve the results that COMMAND writes on /metrics while it runs.  [HOST: 127.0.0.1]",
    ),
    "redact": redact_option,
    "require_all": click.option("--require-all", is_flag=True, help="Do not start unless every node can be recorded."),
    "report": click.option(
        "--no-report", "report", is_flag=True, default=True, flag_value=False, help="Do not write a report."
    ),
    "quiet": click.option("-q", "--quiet", is_flag=True, help="Print neither the status line nor the summary."),
}
"""The options by the names of the fields of RecordSettings, except those for access to agents and to Jolokia."""


def record_options(*omitted: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options of `record`, except those in `omitted`, to a command that receives the fields of RecordSettings.

    Decorators that add other options must come before this one.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        own = [option for name, option in _OPTIONS.items() if name not in omitted]
        return with_options(own, access_options(function, TRUSTED_USER))

    return decorate

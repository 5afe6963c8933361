"""Parameter types: durations (`90s`), times (`10:47`, epoch seconds), sizes, columns, tables, runs, and SSH hosts."""

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from math import isnan
from typing import Any, TypeVar

import click

from collector.printable import one_line
from collector.runs.run import MAX_NAME_CHARS, require_accepted
from exporters.rows.columns import Column

SCHEME = "ssh://"
SSH_PORT = 22
MAX_PORT = 65535
EXAMPLES = "use an address such as ssh://10.0.0.7, ssh://cassandra@db1 or ssh://[fd00::7]:2222"
# ssh's configuration may insert names into shell commands; a name that begins with '-' would be an option.
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}"
_PATTERN = re.compile(
    rf"ssh://(?:(?P<user>{_NAME})@)?"
    rf"(?:\[(?P<six>[0-9A-Fa-f:.]{{2,45}}(?:%[A-Za-z0-9_.-]{{1,15}})?)\]|(?P<host>{_NAME}))"
    r"(?::(?P<port>[0-9]{1,5}))?/?"
)


class SshAddressError(ValueError):
    """An address is invalid; the message is a single line."""


@dataclass(frozen=True)
class SshAddress:
    """A host to reach through ssh; ssh's configuration determines `user` and `port` if they are not set."""

    host: str
    user: str = ""
    port: int | None = None

    @property
    def url(self) -> str:
        """The address in the form ssh://USER@HOST:PORT, without the parts that are not set."""
        user = f"{self.user}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{SCHEME}{user}{host}" + ("" if self.port is None else f":{self.port}")

    def words(self) -> Iterator[str]:
        """Yield the options and the destination for ssh's command line."""
        if self.user:
            yield from ("-l", self.user)
        if self.port is not None:
            yield from ("-p", str(self.port))
        yield from ("--", self.host)

    def command_line(self, command: str = "") -> str:
        """Return the ssh command line that runs `command` at this address, for display to the user."""
        port = "" if self.port is None else f"-p {self.port} "
        user = f"{self.user}@" if self.user else ""
        return f"ssh {port}{user}{self.host} {command}".rstrip()


def is_ssh(text: str) -> bool:
    """Return whether `text` begins with the scheme `ssh://`."""
    return text.startswith(SCHEME)


def parse_ssh_address(text: str) -> SshAddress:
    """Parse an address. Raises SshAddressError."""
    if ":" in text.removeprefix(SCHEME).rpartition("@")[0]:
        raise SshAddressError("an SSH address must not contain a password (hint: use a key)")
    match = _PATTERN.fullmatch(text)
    port = int(match["port"]) if match and match["port"] else None
    if match is None or (port is not None and not 0 < port <= MAX_PORT):
        raise SshAddressError(f"'{one_line(text)}' is not a valid address (hint: {EXAMPLES})")
    return SshAddress(match["six"] or match["host"], match["user"] or "", port)


def labels_of(addresses: Sequence[SshAddress]) -> list[str]:
    """Return a label for each address: its host, with a number if the host occurs several times."""
    hosts = [address.host for address in addresses]
    labels = []
    for index, host in enumerate(hosts):
        number = f"#{hosts[:index].count(host) + 1}" if hosts.count(host) > 1 else ""
        labels.append(host + number)
    return labels


UNITS_S = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION_EXAMPLES = "30, 30s, 5m or 1.5h"
TIME_EXAMPLES = "10:47, 2026-11-21T15:30 or seconds since the epoch"
_DURATION = re.compile(r"(?P<number>\d{1,12}(?:\.\d{0,20})?|\.\d{1,20})(?P<unit>ms|[smhd]?)", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?", re.ASCII)
Command = TypeVar("Command", bound=Callable[..., Any])
UNITS_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
MIN_BYTES = 1 << 20
HELP = "help"
# Cassandra's rule for names, plus wildcards. Other characters could have a special meaning in a JMX object name.
NAME = re.compile(r"[\w*?]+", re.ASCII)


def duration_of(text: str) -> float:
    """Parse a duration such as 30, 30s, 5m or 1.5h; return it in seconds. Raises ValueError."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return float(match["number"]) * UNITS_S[match["unit"]]


class Duration(click.ParamType["float"]):
    """The parameter type for durations from `least_s` to `most_s`; the value is in seconds."""

    name = "duration"

    def __init__(self, least_s: float = 0.0, most_s: float = float("inf")) -> None:
        self._least_s, self._most_s = least_s, most_s

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the duration in seconds."""
        try:
            seconds = float(value) if isinstance(value, int | float) else duration_of(str(value))
        except ValueError:
            self.fail(f"'{value}' is not a valid duration (hint: use {DURATION_EXAMPLES})", param, ctx)
        if not self._least_s <= seconds <= self._most_s:
            bounds = f"must be at least {self._least_s:g} s"
            if self._most_s < float("inf"):
                bounds = f"must be between {self._least_s:g} s and {self._most_s:g} s"
            self.fail(f"'{value}' is out of range: {bounds}", param, ctx)
        return seconds


@dataclass(frozen=True)
class TimeOfDay:
    """A local time of day, without a date; the date is derived from the data."""

    hour: int
    minute: int
    second: int

    def on_day_of(self, time_s: float) -> datetime:
        """Return this time on the local date of `time_s`.

        The result is naive so that adding a day yields the same time of day even if the UTC offset changes.
        """
        day = datetime.fromtimestamp(time_s, timezone.utc).astimezone().replace(tzinfo=None)
        return day.replace(hour=self.hour, minute=self.minute, second=self.second, microsecond=0)

    def last_before(self, time_s: float) -> float:
        """Return the last occurrence at or before `time_s`, in seconds since the epoch."""
        same_day = self.on_day_of(time_s)
        return (same_day if same_day.timestamp() <= time_s else same_day - timedelta(days=1)).timestamp()

    def within(self, begin_s: float, end_s: float) -> float:
        """Return the first occurrence between `begin_s` and `end_s`, else the one nearest to that range."""
        before_s = self.last_before(begin_s)
        after_s = (self.on_day_of(before_s) + timedelta(days=1)).timestamp()
        if before_s == begin_s:
            return before_s
        return after_s if after_s <= end_s or after_s - end_s < begin_s - before_s else before_s


def bounds(
    begin: "float | TimeOfDay | None", end: "float | TimeOfDay | None", first_s: float, last_s: float
) -> tuple[float, float]:
    """Return the time range in seconds since the epoch; a limit that is None becomes infinite.

    The data ranges from `first_s` to `last_s`. A time of day is resolved to its first occurrence in this range or, if
    there is none, to the nearest one.
    """

    def seconds(moment: "float | TimeOfDay | None", default_s: float) -> float:
        if moment is None:
            return default_s
        return moment.within(first_s, last_s) if isinstance(moment, TimeOfDay) else moment

    return seconds(begin, float("-inf")), seconds(end, float("inf"))


def time_of(text: str) -> float | TimeOfDay:
    """Parse a time; return it in seconds since the epoch, or as a time of day.

    Raises ValueError or OverflowError.
    """
    if match := _CLOCK.fullmatch(text):
        hour, minute, second = (int(part or 0) for part in match.groups())
        if hour < 24 and minute < 60 and second < 60:
            return TimeOfDay(hour, minute, second)
        raise ValueError(text)
    try:
        seconds = float(text)
    except ValueError:
        # Before Python 3.11, fromisoformat does not accept Z.
        return datetime.fromisoformat(re.sub(r"[Zz]$", "+00:00", text)).timestamp()
    if isnan(seconds):
        raise ValueError(text)
    return seconds


class Moment(click.ParamType["float | TimeOfDay"]):
    """The parameter type for points in time; a time without a time zone is local."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float | TimeOfDay:
        """Return the time in seconds since the epoch, or as a time of day."""
        if isinstance(value, TimeOfDay):
            return value
        try:
            return time_of(str(value))
        except (ValueError, OverflowError):
            self.fail(f"'{value}' is not a valid time (hint: use {TIME_EXAMPLES})", param, ctx)


def with_options(options: Sequence[Callable[..., Any]], command: Callable[..., Any]) -> Callable[..., Any]:
    """Add options, or other decorators, to a command in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def range_options(command: Command) -> Command:
    """Add --from and --until as the arguments `begin` and `end`."""
    begin = click.option("--from", "begin", type=Moment(), help=f"Start of the time range: {TIME_EXAMPLES}.")
    end = click.option("--until", "end", type=Moment(), help="End of the time range, inclusive, in the same formats.")
    return begin(end(command))


def format_option(text: str = "Output format.  [text]", more: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Return the option --format, whose help is `text`, with the argument `output`; `more` are formats beside JSON."""
    formats = click.Choice(("text", "json", *more))
    return click.option("--format", "output", type=formats, default="text", help=text)


def size(value: object) -> int:
    """Return a size of at least 1M, given in bytes or with one of the binary suffixes K, M, G and T.

    Raises ValueError.
    """
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)([KMGT]?)(?:i?B)?", str(value), re.IGNORECASE)
    size_bytes = int(float(match[1]) * UNITS_BYTES[match[2].upper()]) if match else 0
    if size_bytes < MIN_BYTES:
        raise ValueError(f"'{value}' is not a valid size (hint: use at least 1M, such as 500M or 2G)")
    return size_bytes


def wide_columns() -> Sequence[Column]:
    # Imported here because most commands never list columns.
    from exporters.rows.view import View

    return View(wide=True).columns


class ColumnNames(click.ParamType["tuple[str, ...]"]):
    """The parameter type for a column set, or for comma-separated column names or headers; yields a tuple of names."""

    name = "names"

    def __init__(self, columns: Callable[[], Sequence[Column]] = wide_columns, sets: Sequence[str] = ()) -> None:
        self._columns, self._sets = columns, sets

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Return the column names without duplicates; for 'help', print the list and exit."""
        if isinstance(value, tuple):
            return value
        if value == HELP and ctx is not None:
            for line in [*(f"{name}  (column set)" for name in self._sets), *column_lines(self._columns())]:
                click.echo(line)
            ctx.exit()
        if value in self._sets:
            return (str(value),)
        words = [word.strip().lower() for word in str(value).split(",") if word.strip()]
        if not words:
            self.fail(f"'{value}' does not name a column (hint: use 'help' for a list)", param, ctx)
        names = {column.header.lower(): column.name for column in reversed(self._columns())}
        names |= {column.name: column.name for column in self._columns()}
        for word in words:
            if word in self._sets:
                reason = f"column set '{word}' cannot be combined with other names"
                self.fail(f"{reason} (hint: use one set or a list of columns)", param, ctx)
            if word not in names:
                similar = difflib.get_close_matches(word, [*self._sets, *names], 1, 0.5)
                hint = f"did you mean '{similar[0]}'?" if similar else "use 'help' for a list"
                self.fail(f"unknown column '{word}' (hint: {hint})", param, ctx)
        return tuple(dict.fromkeys(names[word] for word in words))


def column_lines(columns: Sequence[Column]) -> list[str]:
    """Return one line per column with its name, header and description."""
    name, header = (max(len(getattr(column, field)) for column in columns) for field in ("name", "header"))
    return [f"{column.name:{name}}  {column.header:{header}}  {column.help}" for column in columns]


def name_of(_context: click.Context, parameter: click.Parameter, value: str | None) -> str:
    """Return a keyspace or table name, or "" if none is given. Raises click.BadParameter if it is not a valid name."""
    if value is not None and not NAME.fullmatch(value):
        raise click.BadParameter(
            f"{value!r} is not a {parameter.name} name (hint: use letters, digits and _, or * and ? for a pattern)"
        )
    return value or ""


def run_name(text: str) -> str:
    """Return the name of a run. Raises ValueError if agents do not accept it."""
    require_accepted("name", text, MAX_NAME_CHARS)
    return text

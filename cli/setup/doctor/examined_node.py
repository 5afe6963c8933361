"""The node that the doctor examines, the commands that advice contains, and the findings: as text and as JSON."""

import json
import os
import pwd
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from cli.line import node_selection
from cli.line.node_selection import DEFAULT_S, LineSettings
from cli.process_setup import casstat_command
from cli.setup.attach.target_process import as_user
from collector.http.access import HIDDEN, masked_url
from collector.model.snapshot import SourceError
from collector.node.host.cassandra_processes import LocalNode
from collector.node.host.discovery import is_this_machine
from collector.node.host.kernel_files import read_text
from collector.printable import printable

EXAMPLE_URL = "http://NODE:8778/jolokia"
"""The URL of a node's Jolokia agent in a hint; the user replaces NODE."""
_JAR = re.compile(r"(?:apache-cassandra|cassandra-all)-(\d[\w.~-]*)\.jar")
INDENT = " " * 4
_URL = re.compile(r"//\S+")


@dataclass(frozen=True)
class Advice:
    """Builds command lines for hints.

    program  the arguments that run casstat.
    flags    the values of the current options, from the command line or the environment, keyed by their long names.
    root     whether the current user is root; root switches users with runuser instead of sudo.
    """

    program: tuple[str, ...] = ("casstat",)
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    root: bool = False

    def line(self, **changes: str) -> str:
        """Return the current command line with options changed or added; `jmx_port="7199"` sets --jmx-port."""
        named = {f"--{name.replace('_', '-')}": (value,) for name, value in changes.items()}
        flags = {**self.flags, **named}
        return self.command(*(word for flag, values in flags.items() for value in values for word in (flag, value)))

    def command(self, *words: str | Path) -> str:
        """Return casstat's command line with only these arguments."""
        return shlex.join([*self.program, *map(str, words)])

    def as_user(self, user: str, command: str) -> str:
        """Return the casstat command `command`, changed to run as another user."""
        # Use an absolute path, because sudo and runuser may not search the caller's PATH.
        name = shlex.join(self.program)
        command = f"{shutil.which(name) or name}{command.removeprefix(name)}"
        return as_user(user, command, self.root)


def called() -> tuple[str, ...]:
    """Return the command line that runs this installation of casstat again, as a list of arguments."""
    path = Path(sys.argv[0])
    if path.name != "casstat":
        return tuple(casstat_command())
    installed = shutil.which("casstat")
    return ("casstat",) if installed and Path(installed).resolve() == path.resolve() else (str(path.absolute()),)


@dataclass(frozen=True)
class Owner:
    """The user that a process belongs to."""

    uid: int
    name: str


@dataclass(frozen=True)
class ExaminedNode:
    """The node to examine.

    here    Cassandra processes of trusted users on this host.
    others  Cassandra processes of other users.
    users   UIDs of the trusted users.
    uid     the caller's UID.
    """

    settings: LineSettings = field(default_factory=LineSettings)
    here: tuple[LocalNode, ...] = ()
    advice: Advice = field(default_factory=Advice)
    environ: Mapping[str, str] = field(default_factory=dict)
    root: Path = Path("/")
    uid: int = 0
    others: tuple[LocalNode, ...] = ()
    users: frozenset[int] = frozenset()

    @cached_property
    def chosen(self) -> LocalNode | None:
        """The node on this host that the options select; None if there is none, or with --jolokia but no --jmx-port."""
        return node_selection.selected_node(self.settings, self.here)

    @property
    def url(self) -> str:
        """The Jolokia URL to try for the node, or "" if only the default URL is left and may belong to another node."""
        return node_selection.jolokia_url(self.settings, self.chosen, self.here)

    @property
    def asks_here(self) -> bool:
        """Whether the options select a node on this host."""
        url = self.settings.jolokia.jolokia
        return not url or is_this_machine(urlsplit(url if "://" in url else f"//{url}").hostname or "")

    @property
    def nodetool(self) -> Path | None:
        """Path of the nodetool to run, or None if none was found."""
        return node_selection.nodetool_path(self.settings, self.chosen, self.environ.get("PATH"))

    @property
    def jmx_port(self) -> int | None:
        """The node's JMX port, or None for nodetool's default port."""
        return node_selection.jmx_port(self.settings, self.chosen)

    @property
    def interval_s(self) -> float:
        """The time between rows, in seconds."""
        return DEFAULT_S if self.settings.interval_option is None else self.settings.interval_option

    def owner(self, pid: int) -> Owner | None:
        """Return the owner of process `pid`, or None if it has ended or is hidden."""
        try:
            status = read_text(self.root / "proc" / str(pid) / "status")
        except SourceError:
            return None
        fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        # The `Uid` field contains the real, effective, saved and file system UIDs.
        uid = int(fields["Uid"].split()[1])
        try:
            return Owner(uid, pwd.getpwuid(uid).pw_name)
        except KeyError:
            return Owner(uid, f"#{uid}")

    def command(self, pid: int) -> list[str]:
        """Return a process's arguments, or an empty list if the process has ended or is hidden."""
        try:
            return read_text(self.root / "proc" / str(pid) / "cmdline").split("\0")
        except SourceError:
            return []

    def as_owner(self, pid: int, command: str) -> str:
        """Return `command`, changed to run as the owner of process `pid`.

        Returns it unchanged if the caller is root or the owner, or if the owner is unknown.
        """
        owner = self.owner(pid)
        if owner is None or self.uid in (0, owner.uid):
            return command
        return self.advice.as_user(owner.name, command)

    def configuration(self, name: str) -> str:
        """Return the path of a file in the node's configuration directory, or only its name if it is not found."""
        for folder in self._class_path():
            if (folder / name).is_file():
                return str(folder / name)
        return name

    @cached_property
    def release(self) -> str:
        """Cassandra's version according to the names of the node's jars, or "" if it is unknown."""
        for entry in self._class_path():
            jars = entry.parent.glob("*cassandra-*.jar") if entry.name == "*" else [entry]
            if release := next((match[1] for jar in jars if (match := _JAR.fullmatch(jar.name))), ""):
                return release
        return ""

    def _class_path(self) -> list[Path]:
        words = self.command(self.chosen.pid) if self.chosen else []
        paths = [words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-cp", "-classpath")]
        return [Path(entry) for path in paths for entry in path.split(os.pathsep) if entry.startswith("/")]


class State(Enum):
    """State of a source: its columns are complete (ok), limited in some way (warning), or empty (problem)."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """The result of one of the doctor's checks.

    subject  the source, such as jolokia.
    summary  the observed fact.
    impact   the effect of that fact on the columns; "" if that is obvious.
    fixes    commands to run, or instructions such as "add LINE to FILE"; every fix after the first begins with "then: "
             (the next step) or "or: " (an alternative). Empty if nothing has to be done or no fix is known.
    """

    subject: str
    state: State
    summary: str
    impact: str = ""
    fixes: tuple[str, ...] = ()


def ok(subject: str, summary: str, impact: str = "") -> Finding:
    """Return a finding that needs no fix."""
    return Finding(subject, State.OK, summary, impact)


def warning(subject: str, summary: str, impact: str = "", *fixes: str) -> Finding:
    return Finding(subject, State.WARNING, summary, impact, fixes)


def problem(subject: str, summary: str, impact: str = "", *fixes: str) -> Finding:
    return Finding(subject, State.PROBLEM, summary, impact, fixes)


def problems_as_warnings(findings: Iterable[Finding], substitute: str) -> list[Finding]:
    """Return the findings with problems turned into warnings; `substitute` describes the source used instead."""
    return [
        replace(
            finding, state=State.WARNING, impact=f"{finding.impact}; {substitute}" if finding.impact else substitute
        )
        if finding.state is State.PROBLEM
        else finding
        for finding in findings
    ]


def has_problem(findings: Iterable[Finding]) -> bool:
    return any(finding.state is State.PROBLEM for finding in findings)


def alternatives(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the lines, with "or: " before each but the first."""
    return tuple(f"or: {line}" if index else line for index, line in enumerate(lines))


COLOURS = {State.OK: "\x1b[32m", State.WARNING: "\x1b[33m", State.PROBLEM: "\x1b[31m"}
PLAIN = "\x1b[0m"


def is_coloured(environ: Mapping[str, str], *, terminal: bool) -> bool:
    return terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def text_lines(findings: Sequence[Finding], *, colour: bool) -> Iterator[str]:
    """Yield the findings as aligned lines."""
    subject_width = max((len(finding.subject) for finding in findings), default=0)
    state_width = max(len(state.value) for state in State)
    for finding in findings:
        text = printable("; ".join(part for part in (finding.summary, finding.impact) if part))
        state = f"{finding.state.value:{state_width}}"
        state = f"{COLOURS[finding.state]}{state}{PLAIN}" if colour else state
        yield f"{state}  {finding.subject:{subject_width}}  {text}"
        for index, line in enumerate(map(printable, finding.fixes)):
            yield f"{INDENT}{line}" if index else f"{INDENT}fix: {line}"


def json_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield one JSON object per finding; its fixes are joined into one multi-line string.

    The keys are part of the output format, which is older than the current field names.
    """
    for finding in findings:
        row = {
            "subject": finding.subject,
            "state": finding.state.value,
            "what": finding.summary,
            "why": finding.impact,
            "mend": "\n".join(finding.fixes),
        }
        yield json.dumps(row)


def hidden(text: str, secrets: Iterable[str]) -> str:
    """Return `text` with the secrets and all credentials in URLs masked."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN) if secret else text
    return _URL.sub(lambda match: masked_url(match[0]), text)

"""Builds commands for the user to run: casstat with the current or changed options, if necessary as another user."""

import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cli.launch import casstat_command
from cli.setup.attach.target_process import as_user

EXAMPLE_URL = "http://NODE:8778/jolokia"
"""The URL of a node's Jolokia agent in a hint; the user replaces NODE."""


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
        return self.command(*self._flags(changes))

    def command(self, *words: str | Path) -> str:
        """Return casstat's command line with only these arguments."""
        return shlex.join([*self.program, *map(str, words)])

    def as_user(self, user: str, command: str) -> str:
        """Return the casstat command `command`, changed to run as another user."""
        # Use an absolute path, because sudo and runuser may not search the caller's PATH.
        name = shlex.join(self.program)
        command = f"{shutil.which(name) or name}{command.removeprefix(name)}"
        return as_user(user, command, self.root)

    def _flags(self, changes: Mapping[str, str]) -> list[str]:
        named = {f"--{name.replace('_', '-')}": (value,) for name, value in changes.items()}
        return [word for flag, values in {**self.flags, **named}.items() for value in values for word in (flag, value)]


def called(arguments: list[str] = sys.argv) -> tuple[str, ...]:
    """Return the command line that runs this installation of casstat again, as a list of arguments."""
    path = Path(arguments[0])
    if path.name != "casstat":
        return tuple(casstat_command())
    installed = shutil.which("casstat")
    return ("casstat",) if installed and Path(installed).resolve() == path.resolve() else (str(path.absolute()),)

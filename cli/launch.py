"""The command line that runs this installation of casstat again."""

import sys
from pathlib import Path

import cli

PROGRAM = Path(cli.__file__).absolute().parents[1] / "casstat.py"


def casstat_command(*arguments: str | Path) -> list[str]:
    """Return the command line of a child process, which imports casstat's packages from this installation."""
    return [sys.executable, str(PROGRAM), *map(str, arguments)]

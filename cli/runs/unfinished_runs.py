"""Moves runs that did not end out of the way of a sweep or search that repeats them."""

import time
from collections.abc import Collection
from pathlib import Path

from cli import run_folder
from cli.errors import CasstatError, note
from cli.run_folder import RUNS_SUBFOLDER
from cli.runs.command.supervisor import GRACE_S
from cli.runs.ssh.ssh_agent import report_spools
from collector.printable import one_line
from collector.runs.run_file import RunFileError, is_run, read_run

UNFINISHED_SUBFOLDER = "unfinished"
"""The subdirectory of a sweep or search for runs that did not end and are not in its results."""


def set_aside_unfinished(folder: Path, ended: Collection[str]) -> None:
    """Move the runs of the sweep or search in `folder` that are not in `ended` to UNFINISHED_SUBFOLDER.

    `ended` has the directories of the runs that ended, relative to `folder`. If another run has only just been
    interrupted, wait until its command has certainly ended. Raises CasstatError.
    """
    runs = folder / RUNS_SUBFOLDER
    try:
        for path in sorted(runs.iterdir()) if runs.is_dir() else []:
            if f"{RUNS_SUBFOLDER}/{path.name}" not in ended:
                _set_aside(folder, path)
    except OSError as error:
        raise CasstatError(f"{error.filename or folder}: {error.strerror}") from None


def _set_aside(folder: Path, run: Path) -> None:
    if run_folder.is_being_recorded(run):
        raise CasstatError(f"{run}: another process is recording this run")
    alive_s = run_folder.last_alive_s(run)
    if alive_s is not None:
        # The supervisor of a command ends it within this time after its owner has died.
        time.sleep(min(GRACE_S, max(0.0, alive_s + GRACE_S - time.time())))
    parent = folder / UNFINISHED_SUBFOLDER
    parent.mkdir(exist_ok=True)
    names = (run.name, *(f"{run.name}~{number}" for number in range(2, 10_000)))
    target = next(parent / name for name in names if not (parent / name).exists())
    run.rename(target)
    note(f"{run.name} did not end; it will be repeated, and its files are in {target}")
    if is_run(target):
        try:
            report_spools(read_run(target))
        except (OSError, RunFileError) as error:
            note(f"{target}: {one_line(error)}")

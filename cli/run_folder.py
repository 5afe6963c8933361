"""The directory of a run that is being recorded: its name and its lock.

The kernel releases a lock when the process that holds it ends.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from cli.errors import CasstatError
from collector.file_access import file_errors

RUNS_FOLDER = Path("casstat-runs")
"""The default parent directory of runs, relative to the working directory."""
RUNS_SUBFOLDER = "runs"
"""The subdirectory of a sweep or search for its runs."""
WORK_FOLDER = "work"
"""The directory in which a command on a remote host runs, relative to its spool; its $CASSTAT_RUN_DIR."""
STATE_FILE = "capacity.json"
"""The file of a search."""
RUN_VARIABLE, FOLDER_VARIABLE = "CASSTAT_RUN", "CASSTAT_RUN_DIR"
"""Environment variables of a run's command: the run's name, and its directory."""
LOCK_FILE = ".lock"
_NOT_IN_NAMES = re.compile(r"[^\w.+-]+")
MAX_NAME_CHARS = 60
_NOT_IN_FOLDERS = re.compile(r"[^\w.+-]+", re.ASCII)
MAX_COMBINATION_CHARS = 100
UNFINISHED_SUBFOLDER = "unfinished"
"""The subdirectory of a sweep or search for runs that did not end and are not in its results."""
LOG_FILE = "command.log"
SPOOL_FOLDER = re.compile(r"/tmp/casstat-[0-9a-f]{32}")  # noqa: S108 - the client chooses a name that nobody can guess
BEGUN_FILE = "begun"
"""Exists once the start time of a command on this host is known."""


def default_folder(name: str, begin_s: float) -> Path:
    """Return the directory for a run that begins at `begin_s`, such as `casstat-runs/20261123-055717-NAME`."""
    begin = datetime.fromtimestamp(begin_s).strftime("%Y%m%d-%H%M%S")
    return RUNS_FOLDER / "-".join(filter(None, (begin, _NOT_IN_NAMES.sub("-", name).strip("-.")[:MAX_NAME_CHARS])))


def run_folder_name(number: int, count: int, values: Mapping[str, str], repeat: int) -> str:
    """Return the directory of a run, relative to the sweep's, such as `runs/02-concurrency=5-batch=200-r1`.

    `number` is the number of the combination, counted from 1, among `count` combinations.
    """
    parts = (f"{name}={_NOT_IN_FOLDERS.sub('-', value)}" for name, value in values.items())
    return f"{RUNS_SUBFOLDER}/{number:0{len(str(count))}d}-{'-'.join(parts)[:MAX_COMBINATION_CHARS]}-r{repeat}"


def command_variable(folder: Path) -> str:
    """Return the environment variable, as NAME=VALUE, by which the processes of a run's command are recognised.

    `folder` is the command's $CASSTAT_RUN_DIR.
    """
    return f"{FOLDER_VARIABLE}={folder}"


def create(folder: Path) -> bool:
    """Create a run's directory; return whether it is new. Raises CasstatError if that fails or it is not empty."""
    with file_errors(folder, CasstatError):
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir()
        except FileExistsError:
            require_empty(folder)
            return False
    return True


def require_empty(folder: Path) -> None:
    """Raise CasstatError if a directory contains anything but the lock file."""
    with file_errors(folder, CasstatError):
        is_empty = not any(path.name != LOCK_FILE for path in folder.iterdir())
    if not is_empty:
        raise CasstatError(f"{folder}: already exists (hint: choose another directory with -o)")


@contextmanager
def created(folder: Path) -> Iterator[None]:
    """Create the directory of a sweep or search; remove it again after an error before its first run has begun.

    Raises CasstatError if it cannot be created or is not empty.
    """
    is_new = create(folder)
    try:
        yield
    except Exception:
        if is_new and not any((folder / RUNS_SUBFOLDER).glob("*")):
            shutil.rmtree(folder, ignore_errors=True)
        raise


@contextmanager
def recording(folder: Path) -> Iterator[None]:
    """Lock the run as being recorded; after an exception in the block, the lock file remains. Raises CasstatError."""
    with try_lock(folder / LOCK_FILE, creating=True) as is_free:
        if not is_free:
            raise CasstatError(f"{folder}: another process is recording this run")
        yield
        (folder / LOCK_FILE).unlink(missing_ok=True)


def show_alive(folder: Path, now_s: float) -> None:
    """Record that the run's recorder is alive at `now_s`, a time of the run's clock; see `last_alive_s`."""
    with suppress(OSError):
        os.utime(folder / LOCK_FILE, (now_s, now_s))


def last_alive_s(folder: Path) -> float | None:
    """Return when the recorder of a run was last alive, on the run's clock; None if that is unknown."""
    try:
        return (folder / LOCK_FILE).stat().st_mtime
    except OSError:
        return None


def is_being_recorded(folder: Path) -> bool:
    """Return whether a process is recording the run in a directory."""
    try:
        lock = os.open(folder / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def require_not_recorded(folder: Path) -> None:
    """Raise CasstatError if a process is recording the run in a directory."""
    if is_being_recorded(folder):
        raise CasstatError(f"{folder}: the run is being recorded (hint: wait until it ends)")


def recovery_hint(folder: Path) -> str:
    """Return the hint how to complete a run."""
    return f"(hint: run 'casstat fetch --recover {folder}')"


@contextmanager
def try_lock(file: Path, *, creating: bool = False) -> Iterator[bool]:
    """Try to lock a file, which must exist unless `creating`, and yield whether it was not locked.

    Raises CasstatError.
    """
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    with file_errors(file, CasstatError):
        lock = os.open(file, flags | os.O_CREAT if creating else flags, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(lock)

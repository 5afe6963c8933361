"""The directory of a spool on the remote host (see `remote_spool`)."""

import os
import re
import shutil
import stat
import time
from pathlib import Path

from cli.errors import CasstatError
from cli.run_folder import try_lock

FOLDER = re.compile(r"/tmp/casstat-[0-9a-f]{32}")  # noqa: S108 - the client chooses a name that nobody can guess
SOCKET = "socket"
BEGUN_FILE = "begun"
"""Exists once the start time of a command on this host is known."""
JOURNAL_FOLDER, HEARTBEAT_FILE, LOCK_FILE, LOG_FILE = "journal", "heartbeat", "lock", "keeper.log"
# How often the state is checked while an agent stops.
POLL_S = 0.1
STOP_S = 15.0
"""A keeper stops its agent within this time."""


class SpoolEndedError(Exception):
    """The spool is to be deleted."""


def open_spool(folder: Path) -> bool:
    """Create a spool unless it exists; return whether it is new. Raises CasstatError."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        require_spool(folder)
        return False
    except OSError as error:
        raise CasstatError(f"{folder}: {error.strerror}") from None
    (folder / LOCK_FILE).touch(0o600)
    return True


def require_spool(folder: Path) -> None:
    """Raise CasstatError unless `folder` is a spool of the current user."""
    try:
        state = folder.lstat()
        is_marked = stat.S_ISREG((folder / LOCK_FILE).lstat().st_mode)
    except OSError as error:
        raise CasstatError(f"{error.filename}: {error.strerror}") from None
    is_private = state.st_uid == os.geteuid() and not state.st_mode & 0o077
    if not (stat.S_ISDIR(state.st_mode) and is_private and is_marked):
        raise CasstatError(f"{folder}: not a recording directory owned by the current user")


def is_kept(folder: Path) -> bool:
    """Return whether a keeper is running. Raises CasstatError."""
    with try_lock(folder / LOCK_FILE) as is_free:
        return not is_free


def last_beat(folder: Path) -> int:
    """Return a number that changes with each heartbeat. Raises SpoolEndedError."""
    try:
        return (folder / HEARTBEAT_FILE).stat().st_mtime_ns
    except OSError:
        raise SpoolEndedError from None


def delete_spool(folder: Path) -> None:
    """Stop the agent and delete the spool. Raises CasstatError."""
    require_spool(folder)
    (folder / HEARTBEAT_FILE).unlink(missing_ok=True)
    ends_s = time.monotonic() + STOP_S
    while is_kept(folder):
        if time.monotonic() >= ends_s:
            raise CasstatError(f"{folder}: the agent did not stop within {STOP_S:g} s")
        time.sleep(POLL_S)
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise CasstatError(f"{error.filename or folder}: {error.strerror}") from None

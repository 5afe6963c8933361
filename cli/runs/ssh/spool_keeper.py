"""The keeper of a spool: a process, detached from the SSH session, that runs the spool's agent (see `remote_spool`)."""

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from cli.errors import CasstatError
from cli.launch import casstat_command
from cli.run_folder import try_lock
from cli.runs.agents.private_agent import PrivateAgent
from cli.runs.ssh.spool_folder import (
    BEGUN_FILE,
    JOURNAL_FOLDER,
    LOCK_FILE,
    LOG_FILE,
    SOCKET,
    SpoolEndedError,
    last_beat,
    require_spool,
)
from collector.agents.run_records import FILE as RUNS_FILE
from collector.printable import one_line

POLL_S = 0.5
MAX_LOG_BYTES = 1 << 16


def keep(folder: Path, lease_s: float, source: str) -> None:
    """Run the agent until no heartbeat arrives for `lease_s`, or the spool is to be deleted.

    If no run has begun by then, nobody will fetch the recording, so the spool is deleted. Raises CasstatError.
    """
    require_spool(folder)
    with try_lock(folder / LOCK_FILE) as is_first, suppress(SpoolEndedError):
        if not is_first:
            return
        options = () if source == "auto" else ("--source", source)
        with PrivateAgent(folder / JOURNAL_FOLDER, options, f"unix:{folder / SOCKET}") as agent:
            agent.wait_until_serving(lambda: last_beat(folder))
            beat, changed_s = last_beat(folder), time.monotonic()
            while time.monotonic() - changed_s < lease_s:
                time.sleep(POLL_S)
                if agent.has_ended():
                    raise CasstatError("the agent exited unexpectedly")
                latest = last_beat(folder)
                if latest != beat:
                    beat, changed_s = latest, time.monotonic()
        if not _is_needed(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_needed(folder: Path) -> bool:
    """Return whether a run has begun, on the agent or with a command on this host."""
    return (folder / BEGUN_FILE).exists() or (folder / JOURNAL_FOLDER / RUNS_FILE).exists()


def new_keeper(folder: Path, lease_s: float, source: str, variables: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    words = casstat_command("spool", folder, "--keep", "--lease", str(lease_s), "--source", source)
    try:
        with (folder / LOG_FILE).open("wb") as log:
            return subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **variables},
                start_new_session=True,
            )
    except OSError as error:
        raise CasstatError(f"{error.filename or folder}: {error.strerror}") from None


def keeper_problem(folder: Path) -> str:
    """Return why the keeper has ended."""
    try:
        with (folder / LOG_FILE).open("rb") as log:
            lines = log.read(MAX_LOG_BYTES).decode(errors="replace").splitlines()
    except OSError:
        lines = []
    return one_line(lines[-1].removeprefix("casstat: ")) if lines else "the agent ended without a message"

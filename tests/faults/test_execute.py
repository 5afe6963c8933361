"""`casstat execute` ends the command when its client is gone, even while output is waiting for the client."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from uuid import uuid4

import psutil
import pytest

from tests.waiting import eventually

LEASE_S = 2.0


@pytest.fixture
def spool() -> Iterator[Path]:
    folder = Path(f"/tmp/casstat-{uuid4().hex}")  # noqa: S108 - the directory that casstat uses
    folder.mkdir(mode=0o700)
    yield folder
    rmtree(folder)


def executed(spool: Path, command: str, lease_s: float = LEASE_S) -> "subprocess.Popen[bytes]":
    """Start a command whose client has sent the time to start, and reads nothing; the command writes a file `pid`."""
    words = [sys.executable, "-m", "cli", "execute", "--lease", str(lease_s), str(spool), "--", "sh", "-c", command]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b"start 0\n")
    process.stdin.flush()
    eventually(lambda: pid_of(spool))
    return process


def pid_of(spool: Path) -> int:
    """Return the PID of the command; 0 if it is not known yet."""
    file = spool / "work" / "pid"
    return int(file.read_text() or 0) if file.exists() else 0


WRITING = "echo $$ > pid; exec yes"


def test_a_writing_command_ends_when_the_connection_ends(spool: Path) -> None:
    with executed(spool, WRITING) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        pid = pid_of(spool)
        # Its output fills all buffers.
        eventually(lambda: psutil.Process(pid).status() == psutil.STATUS_SLEEPING)
        process.stdin.close()
        process.stdout.close()
        eventually(lambda: not psutil.pid_exists(pid))
        assert process.wait() == 0


def test_a_writing_command_ends_when_heartbeats_stop(spool: Path) -> None:
    with executed(spool, WRITING) as process:
        pid = pid_of(spool)
        eventually(lambda: not psutil.pid_exists(pid))
        process.kill()


def test_files_are_collected_after_the_command_has_ended(spool: Path) -> None:
    command = "echo $$ > pid; until [ -e end ]; do sleep 0.1; done; echo 1 > result"
    collecting = [sys.executable, "-m", "cli", "execute", "--collect", str(spool)]
    with executed(spool, command, 60.0) as process, subprocess.Popen(collecting, stdout=subprocess.PIPE) as collector:
        assert collector.stdout is not None
        messages = map(json.loads, collector.stdout)
        assert [next(messages), next(messages)][1] == {"waiting": True}
        (spool / "work" / "end").touch()
        assert [message["file"] for message in messages if "file" in message] == ["end", "pid", "result"]
        process.kill()

"""Collects the files that a command left on a client host (see `remote_command`)."""

import base64
import hashlib
import os
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, count
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from cli.parameters.parameter_types import SshAddress
from cli.record.clients.remote_command import MAX_PATH_BYTES
from cli.record.ssh.ssh_agent import SshSession, ssh_command
from cli.runs.run_redaction import NotTextError, redact_file
from collector.agents.agent_client import MAX_PARALLEL
from collector.agents.agent_nodes import INTERRUPTED
from collector.printable import count_text, one_line
from collector.redaction.redactor import Redactor

ATTEMPTS = 3
# How long to wait for the next message.
SILENT_S = 60.0
POLL_S = 0.5


class _CollectError(Exception):
    """The files cannot be collected; the message states why."""


class _RefusedError(_CollectError):
    """Another attempt would fail in the same way."""


def collect_all(hosts: Sequence[tuple[SshAddress, str, Path]], redactor: Redactor) -> list[str]:
    """Call `collect` for several hosts in parallel, each an address, a spool and a directory; return the results.

    Raises KeyboardInterrupt after all connections have been closed.
    """
    stopped = threading.Event()
    with ThreadPoolExecutor(MAX_PARALLEL) as pool:
        try:
            return list(pool.map(lambda host: collect(host[0], host[1], host[2], stopped, redactor), hosts))
        finally:
            stopped.set()


def collect(address: SshAddress, spool: str, folder: Path, stopped: threading.Event, redactor: Redactor) -> str:
    """Copy the files in a spool's working directory, without secrets, to `folder`; return what is missing, or "".

    Gives up when `stopped` is set.
    """
    problem = ""
    for _ in range(ATTEMPTS):
        try:
            session = SshSession(address, ssh_command(address, ["casstat", "execute", "--collect", spool]))
        except OSError as error:
            return f"ssh: {error.strerror}"
        try:
            skipped = _receive(session, folder, stopped, redactor)
        except (OSError, _CollectError) as error:
            session.close()
            problem = one_line(error)
            if isinstance(error, OSError | _RefusedError):
                return problem
            continue
        reason = session.close()
        if skipped is not None:
            text = count_text(skipped, "file or directory", "files or directories")
            return f"{text} cannot be collected" if skipped else ""
        problem = reason
    return f"the command's files cannot be collected: {problem}"


def _receive(session: SshSession, folder: Path, stopped: threading.Event, redactor: Redactor) -> int | None:
    """Write the files of a session; return how many the other host skipped, or None if the session ended early.

    Raises OSError and _CollectError.
    """
    wake_end, wake = os.pipe()
    session.send(b"\n")
    last_s = time.monotonic()
    try:
        with _Files(folder, redactor) as files:
            while not session.has_ended and files.skipped is None:
                if time.monotonic() - last_s >= SILENT_S:
                    raise _CollectError(f"no response for {SILENT_S:g} s")
                if stopped.is_set():
                    raise _RefusedError(INTERRUPTED)
                for message in session.messages(wake_end, POLL_S):
                    last_s = time.monotonic()
                    files.take(message)
            return files.skipped
    except (TypeError, ValueError) as error:
        raise _CollectError(f"malformed message: {one_line(error)}") from None
    finally:
        for descriptor in (wake_end, wake):
            os.close(descriptor)


class _Files:
    """Writes the files in messages to `folder`; until a file is complete, it has a temporary name beside `folder`.

    skipped  how many files the other host skipped; None before the last message.
    """

    def __init__(self, folder: Path, redactor: Redactor) -> None:
        self._folder = folder
        self._redactor = redactor
        self._file: BinaryIO | None = None
        self._path = folder
        self._taken: set[Path] = set()
        self._temporary = folder.with_name(f"{folder.name}.part")
        self._checksum = hashlib.sha256()
        self.skipped: int | None = None

    def __enter__(self) -> "_Files":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._temporary.unlink(missing_ok=True)

    def take(self, message: Mapping[str, Any]) -> None:
        """Process a message. Raises OSError, TypeError, ValueError and _CollectError."""
        if "file" in message:
            self._path = self._new_path(self._redactor.text(str(_relative_path(message["file"]))))
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._checksum = hashlib.sha256()
            self._file = self._temporary.open("wb")
        elif "data" in message and self._file is not None:
            data = base64.b64decode(str(message["data"]))
            self._checksum.update(data)
            self._file.write(data)
        elif "sha256" in message and self._file is not None:
            self._file.close()
            if message["sha256"] != self._checksum.hexdigest():
                raise _CollectError(f"{self._path.name}: wrong checksum")
            with suppress(NotTextError):
                redact_file(self._temporary, self._redactor)
            self._temporary.replace(self._path)
            self._file = None
        elif "problem" in message:
            raise _RefusedError(one_line(message["problem"]))
        elif "collected" in message:
            self.skipped = int(message.get("skipped", 0))

    def _new_path(self, name: str) -> Path:
        """Return the path for a file, numbered if another one has the same name without its secrets."""
        first = self._folder / name
        numbered = (first.with_name(f"{first.stem}-{number}{first.suffix}") for number in count(2))
        path = next(path for path in chain([first], numbered) if path not in self._taken)
        self._taken.add(path)
        return path


def _relative_path(name: object) -> PurePosixPath:
    """Return the path of a file. Raises ValueError if it is too long or not inside the working directory."""
    path = PurePosixPath(name if isinstance(name, str) else "")
    is_inside = path.parts and not path.is_absolute() and ".." not in path.parts
    if not is_inside or len(os.fsencode(path)) > MAX_PATH_BYTES or "\0" in str(path):
        raise ValueError(f"'{one_line(name)[:100]}' is not a valid path inside the working directory")
    return path

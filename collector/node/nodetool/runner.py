"""Runs nodetool: one process per report, without a shell, with a deadline."""

import contextlib
import os
import pwd
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from collector.file_access import file_errors
from collector.model.snapshot import SourceError
from collector.printable import one_line

MAX_OUTPUT_BYTES = 64 << 20
MAX_ERRORS_BYTES = 64 << 10
CHUNK_BYTES = 1 << 16
KILL_TIMEOUT_S = 2.0
MAX_PASSWORDS_BYTES = 1 << 16
# The variables that a nodetool of another user keeps; CASSANDRA_PASSWORD, for example, is not for that user.
KEPT = frozenset(
    (
        *("PATH", "JAVA_HOME", "JVM_OPTS", "LC_ALL", "TZ"),
        *("CASSANDRA_HOME", "CASSANDRA_CONF", "CASSANDRA_INCLUDE", "CASSANDRA_LOG_DIR"),
        *("CASSANDRA_USE_ALL_JDK", "CASSANDRA_JDK_UNSUPPORTED"),
    )
)
UserAndGroup = tuple[int, int]
# Options that halve the CPU time for starting the JVM, select the English number format, and keep nodetool from adding
# each command to the history file in the user's home directory.
JVM_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss512k -Duser.language=en -Duser.country=US -Duser.home=/dev/null"
)


class NodetoolError(SourceError):
    """nodetool failed or printed no report."""


class NodetoolStartError(NodetoolError):
    """nodetool could not be started."""


@dataclass(frozen=True)
class Connection:
    """The node's JMX port (None for nodetool's default), user name and password file."""

    port: int | None = None
    user: str = ""
    password_file: Path | None = None

    def flags(self, password_path: str = "") -> list[str]:
        """Return nodetool's flags for the connection; it reads the password from the file at `password_path`."""
        return [
            *(["-p", str(self.port)] if self.port else []),
            *(["-u", self.user] if self.user else []),
            *(["-pwf", password_path] if password_path else []),
        ]


class Nodetool:
    """Runs nodetool against one node. Several threads may use it at once."""

    def __init__(
        self,
        program: Path,
        connection: Connection,
        environ: Mapping[str, str],
        hint: str = "",
        user: Callable[[], UserAndGroup | None] = lambda: None,
    ) -> None:
        """Store the settings without starting nodetool. If a later start fails, the error ends with `hint`.

        `user` is called before each start; it returns the user and group to run nodetool as, or None for casstat's own,
        and raises SourceError if nodetool must not be run.
        """
        self.program = program
        self.connection = connection
        self._user = user
        self._hint = f" (hint: {hint})" if hint else ""
        options = " ".join(part for part in (environ.get("JVM_OPTS"), JVM_OPTIONS) if part)
        # nodetool does not need casstat's own settings, which may contain passwords.
        needed = {name: value for name, value in environ.items() if not name.startswith("CASSTAT_")}
        self._environ = {**needed, "LC_ALL": "C", "JVM_OPTS": options}
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def run(self, arguments: Sequence[str], timeout_s: float) -> str:
        """Return nodetool's output. Raises NodetoolError if it fails, takes too long, or prints nothing or too much."""
        report = f"nodetool {arguments[0]}"
        deadline_s = time.monotonic() + timeout_s
        with self._named_errors(report):
            user = self._user()
        with _password_descriptor(self.connection.password_file, user) as descriptors, self._named_errors(report):
            password_path = f"/dev/fd/{descriptors[0]}" if descriptors else ""
            command = [str(self.program), *self.connection.flags(password_path), *arguments]
            return self._output(command, deadline_s, user, descriptors)

    @contextlib.contextmanager
    def _named_errors(self, report: str) -> Iterator[None]:
        """Let the messages of errors begin with the report, or with the program if it cannot be started."""
        try:
            yield
        except NodetoolStartError as error:
            raise NodetoolStartError(f"{self.program}: {error}{self._hint}") from None
        except SourceError as error:
            raise NodetoolError(f"{report}: {error}") from None

    def _output(
        self, command: list[str], deadline_s: float, user: UserAndGroup | None, descriptors: Sequence[int]
    ) -> str:
        process = self._start(command, user, descriptors)
        try:
            output, errors = _read(process, deadline_s)
            code = _wait(process, deadline_s)
        finally:
            _kill(process)
            with self._lock:
                self._running.discard(process)
        text = output.decode(errors="replace")
        if code:
            raise NodetoolError(_cause(errors.decode(errors="replace") + text) or f"exit code {code}")
        if not text.strip():
            raise NodetoolError(f"no output{_suffix(errors)}")
        return text

    def close(self) -> None:
        """Kill all running processes, and allow no more to be started."""
        with self._lock:
            self._closed = True
            for process in self._running:
                _kill(process)

    def _start(
        self, command: list[str], user: UserAndGroup | None, descriptors: Sequence[int]
    ) -> subprocess.Popen[bytes]:
        uid, gid = user or (None, None)
        with self._lock:
            if self._closed:
                raise NodetoolError("cancelled")
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=self._environ if uid is None else _environ_of(uid, self._environ),
                    user=uid,
                    group=gid,
                    extra_groups=None if uid is None else [],
                    # The other user may not be allowed to read the working directory.
                    cwd=None if uid is None else "/",
                    pass_fds=descriptors,
                    # Start a process group, so that the JVM can be killed along with the nodetool script and Ctrl-C
                    # reaches neither of them.
                    start_new_session=True,
                )
            except OSError as error:
                raise NodetoolStartError(error.strerror) from None
            self._running.add(process)
            return process


@contextlib.contextmanager
def _password_descriptor(path: Path | None, user: UserAndGroup | None) -> Iterator[tuple[int, ...]]:
    """Yield a descriptor of a copy of the password file that only `user` can open; nothing if `path` is None.

    nodetool opens it as /dev/fd/N (option -pwf). Neither an argument nor a file in a folder reveals the password, and
    another user's nodetool need not be able to read the file. Raises NodetoolError.
    """
    if path is None:
        yield ()
        return
    with (
        file_errors(path, NodetoolError),
        # Opening a named pipe without O_NONBLOCK would block.
        open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file,
    ):
        content = file.read(MAX_PASSWORDS_BYTES)
    descriptor = os.memfd_create("jmx-password")
    try:
        os.write(descriptor, content)
        os.fchmod(descriptor, 0o600)
        if user is not None:
            os.fchown(descriptor, *user)
        yield (descriptor,)
    finally:
        os.close(descriptor)


def _environ_of(uid: int, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a nodetool that runs as another user, who can read it."""
    kept = {name: value for name, value in environ.items() if name in KEPT}
    try:
        return {**kept, "HOME": pwd.getpwuid(uid).pw_dir}
    except KeyError:
        return kept


def _read(process: subprocess.Popen[bytes], deadline_s: float) -> tuple[bytes, bytes]:
    """Return the process's complete stdout and the beginning of its stderr. Raises NodetoolError."""
    received = {process.stdout: bytearray(), process.stderr: bytearray()}
    limits = {process.stdout: MAX_OUTPUT_BYTES, process.stderr: MAX_ERRORS_BYTES}
    with selectors.DefaultSelector() as selector, process.stdout, process.stderr:  # type: ignore[union-attr]
        for stream in received:
            selector.register(stream, selectors.EVENT_READ, stream)  # type: ignore[arg-type]
        while selector.get_map():
            left_s = deadline_s - time.monotonic()
            ready = selector.select(left_s) if left_s > 0 else []
            if not ready:
                cause = _suffix(bytes(received[process.stderr]))
                raise NodetoolError(f"killed because its output was not complete in time{cause}")
            for key, _ in ready:
                part = os.read(key.fd, CHUNK_BYTES)
                if not part:
                    selector.unregister(key.fileobj)
                elif len(received[key.data]) < limits[key.data]:
                    received[key.data] += part
                elif key.data is process.stdout:
                    raise NodetoolError(f"killed because its output was larger than {MAX_OUTPUT_BYTES >> 20} MiB")
    return bytes(received[process.stdout]), bytes(received[process.stderr])


def _wait(process: subprocess.Popen[bytes], deadline_s: float) -> int:
    try:
        return process.wait(max(0.1, deadline_s - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise NodetoolError("killed because it did not exit in time") from None


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group, unless the process has been reaped, in which case its PID may have been reused."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(KILL_TIMEOUT_S)


def _suffix(errors: bytes) -> str:
    cause = _cause(errors.decode(errors="replace"))
    return f": {cause}" if cause else ""


def _cause(text: str) -> str:
    """Return the line of nodetool's output that best states the error, or "" if there is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    marked = [line for line in lines if line.startswith(("nodetool: ", "error: ", "Error: ", "Exception in"))]
    plain = [line for line in lines if not line.startswith(("at ", "--", "...", "See 'nodetool", "Picked up", "WARN"))]
    return one_line((marked or plain or [""])[0].removeprefix("nodetool: "))

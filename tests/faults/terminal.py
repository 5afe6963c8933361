"""Runs the real program in a pseudo-terminal of a given size."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from types import TracebackType

from tests.faults.program import PATIENCE_S, command, environment

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """`casstat ARGUMENTS` with a pseudo-terminal as its standard input and output."""

    is_controlling = False

    def __init__(self, columns: int, *arguments: str, lines: int = 24, **environ: str) -> None:
        self._master, slave = pty.openpty()
        self._text = ""
        self.resize(columns, lines)
        env = environment(**{"TERM": "xterm", **environ})
        try:
            self._process = subprocess.Popen(
                command(*arguments),
                env=env,
                stdin=slave,
                stdout=slave,
                stderr=slave if self.is_controlling else subprocess.PIPE,
                text=True,
                start_new_session=self.is_controlling,
                preexec_fn=(lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) if self.is_controlling else None,
            )
        finally:
            os.close(slave)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait(PATIENCE_S)
        if self._process.stderr is not None:
            self._process.stderr.close()
        os.close(self._master)

    @property
    def text(self) -> str:
        """All output so far."""
        return self._text

    @property
    def lines(self) -> list[str]:
        """All complete lines of output so far, with escape sequences."""
        return [line.rstrip("\r") for line in self._text.split("\n")[:-1]]

    def resize(self, columns: int, lines: int = 24) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def read(self, rows: int) -> list[str]:
        """Wait until there are at least `rows` lines, and return all lines."""
        ends_s = time.monotonic() + PATIENCE_S
        while len(self.lines) < rows:
            assert time.monotonic() < ends_s, self._text
            self._more()
        return self.lines

    def read_until(self, text: str) -> None:
        """Wait until the output contains `text`; fail after PATIENCE_S."""
        ends_s = time.monotonic() + PATIENCE_S
        while text not in self._text:
            assert time.monotonic() < ends_s, self._text
            self._more()

    def end(self, number: signal.Signals | None = signal.SIGINT) -> tuple[int, str]:
        """Send a signal, if any, read all output, and return the exit code and stderr."""
        if number is not None:
            self._process.send_signal(number)
        while self._more():
            continue
        _, errors = self._process.communicate(timeout=PATIENCE_S)
        return self._process.returncode, errors or ""

    def _more(self) -> bool:
        """Wait for output and read it; return whether more may follow."""
        if not select.select([self._master], [], [], PATIENCE_S)[0]:
            return False
        # On Linux, reading fails once the program has closed its side.
        with contextlib.suppress(OSError):
            data = os.read(self._master, 1 << 16)
            self._text += data.decode()
            return bool(data)
        return False


class ControllingTerminal(Terminal):
    """`casstat ARGUMENTS` in a session of its own with a pseudo-terminal for all standard streams, as in a shell."""

    is_controlling = True


def plain(line: str) -> str:
    """Return the line without colours and without the annotations that follow its numbers."""
    return ESCAPE.sub("", line).partition("# ")[0].rstrip()

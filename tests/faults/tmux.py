"""Runs the real program in a terminal emulated by tmux, sends keys and reads the screen."""

import shlex
import subprocess
import time
import uuid
from collections.abc import Callable
from types import TracebackType

import psutil

from tests.faults.program import command, environment

PATIENCE_S = 60.0


class Screen:
    """`casstat ARGUMENTS` on a tmux screen of `width` by `height` cells. It is killed when the `with` block ends."""

    def __init__(self, width: int, height: int, *arguments: str, **environ: str) -> None:
        self._server = f"casstat-{uuid.uuid4().hex[:12]}"
        self.width, self.height = width, height
        program = shlex.join(command(*arguments))
        # The shell keeps running, so that the screen can be read after the program has ended.
        shell_command = f"{program}; echo left with $?; sleep 600"
        size = ["-x", str(width), "-y", str(height)]
        # The state directory is unusable, so that no test starts with a view that another test saved.
        defaults = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "XDG_STATE_HOME": "/dev/null"}
        variables = environment(**{**defaults, **environ})
        started = ["tmux", "-L", self._server, "-f", "/dev/null", "-u", "new-session", "-d", *size, shell_command]
        subprocess.run(started, check=True, env=variables, timeout=PATIENCE_S)

    def __enter__(self) -> "Screen":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tmux("kill-server")

    def _tmux(self, *arguments: str) -> str:
        command_line = ["tmux", "-L", self._server, *arguments]
        return subprocess.run(command_line, capture_output=True, text=True, timeout=PATIENCE_S, check=False).stdout

    @property
    def lines(self) -> list[str]:
        return self._tmux("capture-pane", "-p").split("\n")[: self.height]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def styled(self) -> str:
        """The contents of the screen, with escape sequences."""
        return self._tmux("capture-pane", "-p", "-e")

    @property
    def pid(self) -> int:
        """The program's process id."""
        shell = psutil.Process(int(self._tmux("list-panes", "-F", "#{pane_pid}")))
        return next(child.pid for child in shell.children(recursive=True) if "cli" in child.cmdline())

    def press(self, *keys: str) -> None:
        """Send keys, given by their tmux names."""
        self._tmux("send-keys", *keys)

    def resize(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def until(self, holds: Callable[[str], bool], patience_s: float = PATIENCE_S) -> str:
        """Wait until a condition holds for the text on the screen, and return the text."""
        ends_s = time.monotonic() + patience_s
        while not holds(text := self.text):
            assert time.monotonic() < ends_s, text
            time.sleep(0.05)
        return text

    def row(self, name: str) -> str:
        """Return a node's line on the screen, or "" if there is none."""
        return next((line for line in self.lines if line[2:].strip().startswith(name)), "")

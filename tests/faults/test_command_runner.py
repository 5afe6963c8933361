"""A run's command: its output passes through unchanged, and the command never outlives the process that started it."""

import contextlib
import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import psutil
import pytest

from cli.record.command import command_runner, supervised_command
from cli.record.command.command_runner import CommandRunner
from cli.record.command.output_observers import CommandLog, OutputObserver
from cli.record.command.supervised_command import SUPERVISOR, CommandResult
from collector.redaction.redactor import Redactor
from tests.output_copy import OutputCopy

PATIENCE_S = 60.0
FOREVER_S = 1e9
CTRL_C = b"\x03"
# Runs a command as `record` does, and then prints the result.
OWNER = """
import io, os, sys
from cli.record.command.command_runner import CommandRunner
class OutputCopy(io.BytesIO):
    def write(self, data, _stream=1, /):
        return super().write(data)
log = OutputCopy()
result = CommandRunner(sys.argv[1:], log, os.environ).run()
print("result", result.exit_code, len(log.getvalue()), result.problem, file=sys.stderr)
"""


def run(*command: str, log: OutputCopy | None = None) -> CommandResult:
    return CommandRunner(command, log or OutputCopy(), os.environ).run()


def until(holds: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < ends_s
        time.sleep(0.01)


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_output_passes_through_unchanged_and_is_kept(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    log = OutputCopy()
    assert run("sh", "-c", r"printf 'a\377\n'; printf 'b\376' >&2; exit 3", log=log) == CommandResult(3)
    printed = capfdbinary.readouterr()
    assert (printed.out, printed.err) == (b"a\xff\n", b"b\xfe")
    assert sorted(log.getvalue()) == sorted(b"a\xff\nb\xfe")


def test_large_output_is_complete(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    log = OutputCopy()
    assert run("head", "-c", "20000000", "/dev/zero", log=log).exit_code == 0
    assert len(capfdbinary.readouterr().out) == len(log.getvalue()) == 20_000_000


def test_the_exit_code_is_that_of_a_shell(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert run("sh", "-c", "kill -KILL $$").exit_code == 128 + signal.SIGKILL
    assert run("no-such-command-here") == CommandResult(127, "No such file or directory")
    assert run(str(file)) == CommandResult(126, "Permission denied")


def test_a_command_that_ignores_ctrl_c_is_terminated_by_the_second_one_and_killed_by_the_third(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command_runner, "SUCCESSIVE_S", FOREVER_S)
    log = OutputCopy()
    script = "trap 'echo interrupted' INT; trap 'echo terminated' TERM; echo ready; while :; do sleep 0.05; done"
    runner = CommandRunner(["sh", "-c", script], log, os.environ)
    results: list[CommandResult] = []

    # Signal handlers can be set only in the main thread, so the interrupts come from another thread.
    def interrupt() -> None:
        for word in (b"ready", b"interrupted", b"terminated"):
            until(lambda word=word: word in log.getvalue())  # type: ignore[misc]
            runner.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    results.append(runner.run())
    thread.join()
    assert results == [CommandResult(128 + signal.SIGKILL)]


def test_processes_left_in_the_background_are_reported_and_not_waited_for() -> None:
    log = OutputCopy()
    began_s = time.monotonic()
    result = run("sh", "-c", "sleep 60 & echo $!", log=log)
    try:
        assert result == CommandResult(0, left=True)
        assert time.monotonic() - began_s < PATIENCE_S
    finally:
        os.kill(int(log.getvalue()), signal.SIGKILL)


@pytest.mark.parametrize("script", ["sleep 1000", "trap '' TERM INT HUP; while :; do sleep 1; done"])
def test_the_command_ends_if_its_owner_is_killed(script: str) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, "sh", "-c", f"echo $$; {script}"], stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    with owner.stdout as out:
        process = psutil.Process(int(out.readline()))
        supervisor = process.parent()
        owner.kill()
        owner.wait()
    assert supervisor is not None
    for left in (process, supervisor):
        until(lambda left=left: is_gone(left.pid))  # type: ignore[misc]


def owner(*command: str, prelude: str = "") -> list[str]:
    return [sys.executable, "-c", prelude + OWNER, *command]


def test_the_end_of_the_output_is_complete_however_slow_its_reader_is(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    now_s = 0.0
    monkeypatch.setattr(supervised_command, "time", SimpleNamespace(monotonic=lambda: now_s))

    class SlowReader(OutputObserver):
        """Reads nothing until the command has ended, and then takes ten simulated seconds for each read."""

        def before_output(self, data: bytes, _stream: int) -> None:
            nonlocal now_s
            if now_s == 0:
                pid = int(data.split()[0])
                until(lambda: not psutil.pid_exists(pid))
            now_s += 10

    # The pipe is large enough for all output, so the command can end before any of it is read.
    script = f"import fcntl, os; fcntl.fcntl(1, {fcntl.F_SETPIPE_SZ}, 1 << 20); print(os.getpid(), flush=True)"
    command = [sys.executable, "-c", f"{script}; os.write(1, b'x' * 900_000)"]
    log = OutputCopy()
    assert CommandRunner(command, log, os.environ, SlowReader()).run() == CommandResult(0)
    assert log.getvalue().count(b"x") == capfdbinary.readouterr().out.count(b"x") == 900_000


def test_processes_that_go_on_writing_in_the_background_are_not_waited_for() -> None:
    assert run("sh", "-c", "yes & exit 3") == CommandResult(3, left=True)


def test_the_command_continues_when_the_reader_of_its_output_has_gone() -> None:
    command = owner("head", "-c", "1000000", "/dev/zero")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == "result 0 1000000 \n"


def test_the_command_continues_when_its_output_cannot_be_written_and_the_cause_is_reported() -> None:
    with Path("/dev/full").open("wb") as full:
        process = subprocess.run(
            owner("head", "-c", "1000000", "/dev/zero"), stdout=full, stderr=subprocess.PIPE, text=True, check=True
        )
    assert process.stderr == "result 0 1000000 standard output: No space left on device\n"


def test_the_output_is_complete_if_the_standard_output_does_not_block() -> None:
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    with os.fdopen(ours, "rb") as reader:
        process = subprocess.Popen(
            owner("head", "-c", "1000000", "/dev/zero"), stdout=theirs, stderr=subprocess.PIPE, text=True
        )
        os.close(theirs)
        assert len(reader.read()) == 1_000_000
        assert process.communicate()[1] == "result 0 1000000 \n"


def test_the_command_continues_when_its_log_cannot_be_written(capfd: pytest.CaptureFixture[str]) -> None:
    with CommandLog(Path("/dev/full"), Redactor()) as log:
        assert CommandRunner(["sh", "-c", "echo a; exit 3"], log, os.environ).run() == CommandResult(3)
    problem = "the command's output is incomplete: No space left on device"
    assert capfd.readouterr().err == f"casstat: /dev/full: {problem}\n"


def test_an_error_in_the_observer_ends_the_command() -> None:
    class Failing(OutputObserver):
        def before_output(self, data: bytes, _stream: int) -> None:
            raise ValueError(data.decode())

    with pytest.raises(ValueError, match=r"\d+") as failure:
        CommandRunner(["sh", "-c", "echo $$; exec sleep 1000"], OutputCopy(), os.environ, Failing()).run()
    assert not psutil.pid_exists(int(str(failure.value)))


def test_ctrl_c_long_after_the_previous_one_interrupts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_runner, "SUCCESSIVE_S", 0, raising=False)
    log = OutputCopy()
    script = "trap 'trap \"exit 5\" INT; echo interrupted' INT; echo ready; while :; do sleep 0.05; done"
    runner = CommandRunner(["sh", "-c", script], log, os.environ)

    def interrupt() -> None:
        for word in (b"ready", b"interrupted"):
            until(lambda word=word: word in log.getvalue())  # type: ignore[misc]
            runner.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    assert runner.run() == CommandResult(5)
    thread.join()


def test_an_interrupt_after_the_end_has_no_effect() -> None:
    runner = CommandRunner(["true"], OutputCopy(), os.environ)
    runner.run()
    # These pipes reuse the descriptor numbers of the pipes that the runner has closed.
    pipes = [os.pipe() for _ in range(8)]
    runner.interrupt()
    assert select.select([ours for ours, _ in pipes], [], [], 0)[0] == []
    for descriptor in (descriptor for ends in pipes for descriptor in ends):
        os.close(descriptor)


def test_ignored_signals_remain_ignored_by_the_command() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        log = OutputCopy()
        assert run("sh", "-c", f"kill -HUP $$; kill -HUP {os.getpid()}; echo survived", log=log) == CommandResult(0)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert log.getvalue() == b"survived\n"


def test_the_command_is_killed_if_its_supervisor_is_killed() -> None:
    log = OutputCopy()
    result = run("sh", "-c", "echo $$; kill -KILL $PPID; exec sleep 1000", log=log)
    problem = "the command's supervisor ended unexpectedly (signal 9); the command has been killed"
    assert result == CommandResult(125, problem)
    pid = int(log.getvalue())
    until(lambda: is_gone(pid))


def test_a_supervisor_that_fails_is_reported_with_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_runner, "SUPERVISOR", (sys.executable, "-c", "raise SystemExit(3)"))
    assert run("true") == CommandResult(125, "the command's supervisor ended unexpectedly (exit status 3)")


def test_the_supervisor_does_not_depend_on_the_kernel_or_on_the_python_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('shadowed')")
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    assert CommandRunner(["true"], OutputCopy(), environ).run() == CommandResult(0)
    *python, file = SUPERVISOR
    code = "import os, runpy, sys; vars(os).pop('pidfd_open', None); del sys.argv[0]"
    code += "; runpy.run_path(sys.argv[0], run_name='__main__')"
    monkeypatch.setattr(command_runner, "SUPERVISOR", (*python, "-c", code, file))
    assert run("true") == CommandResult(0)


def test_closed_standard_streams_do_not_matter() -> None:
    command = ["sh", "-c", 'exec "$@" <&- >&-', "sh", *owner("sh", "-c", "cat; echo done")]
    process = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=True)
    assert process.stderr == "result 0 5 \n"


class Terminal:
    """A process that runs a command as `record` does, on a new terminal."""

    def __init__(
        self,
        *command: str,
        prelude: str = "",
        stdin: IO[bytes] | None = None,
        stderr: int | None = None,
        size: tuple[int, int] = (24, 80),
    ) -> None:
        self._master, slave = pty.openpty()
        self.output = b""
        self.resize(*size)
        controlling = "import fcntl, termios; fcntl.ioctl(1, termios.TIOCSCTTY, 0)\n"
        self.process = subprocess.Popen(
            owner(*command, prelude=controlling + prelude),
            stdin=stdin or slave,
            stdout=slave,
            stderr=stderr or slave,
            start_new_session=True,
        )
        os.close(slave)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
        self.close()

    def close(self) -> None:
        if self._master >= 0:
            os.close(self._master)
        self._master = -1

    def resize(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        """Type keys, reading output at the same time."""
        os.set_blocking(self._master, False)
        ends_s = time.monotonic() + PATIENCE_S
        while keys:
            assert time.monotonic() < ends_s, f"{len(keys)} characters have not been read"
            ready, writable, _ = select.select([self._master], [self._master], [], PATIENCE_S)
            if writable:
                with contextlib.suppress(BlockingIOError):
                    keys = keys[os.write(self._master, keys[:1024]) :]
            if ready:
                self.read()

    def read(self, size: int = 1 << 16) -> bool:
        """Wait for output and read it; return False at its end."""
        assert select.select([self._master], [], [], PATIENCE_S)[0], self.output[-1000:]
        try:
            data = os.read(self._master, size)
        except OSError:
            return False
        self.output += data
        return bool(data)

    def read_until(self, text: bytes, times: int = 1) -> None:
        while self.output.count(text) < times:
            assert self.read(), self.output[-1000:]

    def result(self) -> list[str]:
        """Read all output; return the result's words: the exit code, the length of the log and the problem, if any."""
        while self.read():
            continue
        output, _, result = self.output.rpartition(b"result ")
        self.output = output
        return result.decode().split()


def test_on_a_terminal_the_command_has_a_terminal_of_the_same_size_and_reads_from_it() -> None:
    script = "trap 'stty size; exit 5' WINCH; read a; echo got $a; tty; stty size; while :; do sleep 0.05; done"
    with Terminal("sh", "-c", script, size=(31, 97)) as terminal:
        terminal.type(b"hello\n")
        terminal.read_until(b"\r\n31 97\r\n")
        terminal.resize(45, 132)
        assert terminal.result()[0] == "5"
    assert b"got hello\r\n/dev/pts/" in terminal.output
    assert terminal.output.endswith(b"\r\n45 132\r\n")


def test_the_copy_of_a_terminals_output_has_no_added_carriage_returns() -> None:
    with Terminal("printf", r"a\nb\r\nc\r") as terminal:
        assert terminal.result() == ["0", "7"]
    assert terminal.output == b"a\r\nb\r\r\nc\r"


def test_a_slow_terminal_gets_the_end_of_the_output() -> None:
    prelude = "from cli.record.command import command_runner; command_runner.DRAIN_S = 0.01\n"
    with Terminal("sh", "-c", "head -c 100000 /dev/zero; echo end", prelude=prelude) as terminal:
        while b"end" not in terminal.output:
            assert terminal.read(2048)
            time.sleep(0.002)
        assert terminal.result() == ["0", "100004"]
    assert terminal.output == bytes(100_000) + b"end\r\n"


def test_the_command_inherits_redirected_input(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("first\nlast\n")
    with (
        file.open("rb") as stdin,
        Terminal("sh", "-c", "tty; cat; stty size < /dev/tty; exec sleep 1000", stdin=stdin) as terminal,
    ):
        terminal.read_until(b"24 80")
        terminal.type(CTRL_C)
        assert terminal.result()[0] == "130"
    assert b"not a tty\r\n" in terminal.output.replace(b"\r\r", b"\r")
    assert b"first\r\nlast\r\n" in terminal.output.replace(b"\r\r", b"\r")


def test_ctrl_c_works_after_more_has_been_pasted_than_the_command_reads() -> None:
    with Terminal("sh", "-c", "echo ready; exec sleep 1000") as terminal:
        terminal.read_until(b"ready")
        terminal.type((b"x" * 79 + b"\n") * 5000)
        terminal.type(CTRL_C)
        assert terminal.result()[0] == "130"


def test_a_large_paste_is_complete() -> None:
    with Terminal("sh", "-c", "stty -echo; echo ready; read a; head -n 5000 | wc -c") as terminal:
        terminal.read_until(b"ready")
        terminal.type((b"x" * 79 + b"\n") * 5001)
        assert terminal.result()[0] == "0"
    assert terminal.output.endswith(b"\r\n400000\r\n")


INTERACTIVE = """
import signal, sys
signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
print("ready", flush=True)
print("got", sys.stdin.readline())
"""


def test_an_interactive_program_can_be_interrupted_many_times() -> None:
    prelude = "from cli.record.command import command_runner; command_runner.SUCCESSIVE_KEYS_S = 0\n"
    with Terminal(sys.executable, "-c", INTERACTIVE, prelude=prelude) as terminal:
        terminal.read_until(b"ready\r\n")
        for presses in range(1, 5):
            terminal.type(b"abc" + CTRL_C)
            terminal.read_until(b"interrupted", presses)
        terminal.type(b"hello\n")
        assert terminal.result()[0] == "0"
    assert terminal.output.count(b"^C") == 4
    assert b"got hello\r\n" in terminal.output


@pytest.mark.skipif(shutil.which("bash") is None, reason="requires a shell with job control")
def test_ctrl_c_goes_to_the_foreground_job_of_a_shell() -> None:
    with Terminal("env", "HISTFILE=/dev/null", "bash", "--norc", "--noprofile", "-i") as terminal:
        terminal.type(b"sh -c 'echo $((6 * 7)); exec sleep 1000'\n")
        terminal.read_until(b"42\r\n")
        terminal.type(CTRL_C)
        terminal.type(b"echo status $?\n")
        terminal.read_until(b"status 130")
        terminal.type(b"exit\n")
        assert terminal.result()[0] == "0"


STUBBORN = """
import os, signal, subprocess
child = subprocess.Popen(["sh", "-c", "trap '' TERM; exec sleep 1000"], preexec_fn=os.setpgrp)
signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
signal.signal(signal.SIGTERM, lambda *_: print("terminated", flush=True))
print(child.pid, "ready", flush=True)
while True:
    signal.pause()
"""


def test_pressing_ctrl_c_repeatedly_kills_all_processes_of_the_command() -> None:
    prelude = f"from cli.record.command import command_runner; command_runner.SUCCESSIVE_KEYS_S = {FOREVER_S}\n"
    # Without noflsh, Ctrl-C would also discard output.
    command = ("sh", "-c", 'stty noflsh; exec "$@"', "sh", sys.executable, "-c", STUBBORN)
    with Terminal(*command, prelude=prelude) as terminal:
        for word in (b"ready", b"interrupted", b"terminated"):
            terminal.read_until(word)
            terminal.type(CTRL_C)
        assert terminal.result()[0] == "137"
    child = int(terminal.output.split()[0])
    until(lambda: is_gone(child))


def test_the_command_continues_when_its_terminal_is_closed(tmp_path: Path) -> None:
    file = tmp_path / "closed"
    script = f"trap '' HUP; echo ready; until [ -e {file} ]; do sleep 0.05; done; head -c 100000 /dev/zero; exit 4"
    with Terminal("sh", "-c", script, stderr=subprocess.PIPE) as terminal:
        terminal.read_until(b"ready")
        terminal.close()
        file.touch()
        assert terminal.process.communicate(timeout=PATIENCE_S)[1] == b"result 4 100006 \n"


# Makes the owner a background job of the terminal.
BACKGROUND = """
import os
child = os.fork()
if child:
    status = os.waitpid(child, os.WUNTRACED)[1]
    os._exit(99 if os.WIFSTOPPED(status) else 0)
os.setpgrp()
"""


def test_a_background_job_leaves_the_terminal_alone() -> None:
    with Terminal("sh", "-c", "cat; echo end", prelude=BACKGROUND) as terminal:
        assert terminal.result() == ["0", "4"]
        assert terminal.process.wait() == 0

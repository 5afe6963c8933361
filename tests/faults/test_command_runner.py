"""The command of a run: its output passes through unchanged, and it never outlives its owner."""

import io
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from cli.runs.command_runner import CommandResult, CommandRunner

PATIENCE_S = 20.0
# Runs a command as `record` does, and then prints the result.
OWNER = """
import io, os, sys
from cli.runs.command_runner import CommandRunner
log = io.BytesIO()
result = CommandRunner(sys.argv[1:], log, os.environ).run()
print(result.exit_code, len(log.getvalue()))
"""


def run(*command: str, log: io.BytesIO | None = None) -> CommandResult:
    return CommandRunner(command, log or io.BytesIO(), os.environ).run()


def until(holds: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < ends_s
        time.sleep(0.01)


def test_output_passes_through_unchanged_and_is_kept(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    log = io.BytesIO()
    assert run("sh", "-c", r"printf 'a\377\n'; printf 'b\376' >&2; exit 3", log=log) == CommandResult(3)
    printed = capfdbinary.readouterr()
    assert (printed.out, printed.err) == (b"a\xff\n", b"b\xfe")
    assert sorted(log.getvalue()) == sorted(b"a\xff\nb\xfe")


def test_large_output_is_complete(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    log = io.BytesIO()
    assert run("head", "-c", "20000000", "/dev/zero", log=log).exit_code == 0
    assert len(capfdbinary.readouterr().out) == len(log.getvalue()) == 20_000_000


def test_the_exit_code_is_that_of_a_shell(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert run("sh", "-c", "kill -KILL $$").exit_code == 128 + signal.SIGKILL
    assert run("no-such-command-here") == CommandResult(127, "No such file or directory")
    assert run(str(file)) == CommandResult(126, "Permission denied")


def test_a_command_that_ignores_ctrl_c_is_terminated_at_the_second_and_killed_at_the_third() -> None:
    log = io.BytesIO()
    script = "trap 'echo interrupted' INT; trap 'echo terminated' TERM; echo ready; while :; do sleep 0.05; done"
    runner = CommandRunner(["sh", "-c", script], log, os.environ)
    results: list[CommandResult] = []

    # Signal handlers can be set only in the main thread, so the interrupts come from another one.
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
    log = io.BytesIO()
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
        until(lambda left=left: not left.is_running() or left.status() == psutil.STATUS_ZOMBIE)  # type: ignore[misc]


def test_on_a_terminal_the_command_has_a_terminal_of_the_same_size_and_reads_from_it() -> None:
    child, master = pty.fork()
    if child == 0:
        os.execv(  # noqa: S606 - no shell
            sys.executable,
            [
                sys.executable,
                "-c",
                OWNER,
                "sh",
                "-c",
                "stty rows 31 cols 97; read a; tty; stty size; echo got $a",
            ],
        )
    os.write(master, b"hello\n")
    output = b""
    while chunk := _read(master):
        output += chunk
    os.waitpid(child, 0)
    os.close(master)
    assert b"/dev/pts/" in output
    assert b"31 97" in output
    assert b"got hello" in output
    assert output.split()[-2] == b"0"


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:
        return b""

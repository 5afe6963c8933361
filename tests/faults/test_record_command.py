"""A run's command: its status, its input and its output pass through `casstat record` unchanged."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.main import main
from collector.runs.run_file import read_run
from tests.faults.recorders import recorded
from tests.faults.recording_agent import Node
from tests.faults.terminal import ControllingTerminal

MIB = 1 << 20
SIZE_MIB = 256
# Prints SIZE_MIB MiB without a newline, and then, on stderr, the growth of the recorder's peak resident size in KiB.
# The recorder is the parent of the supervisor, which is the parent of the command.
PRINTING = f"""
import os, re, sys
def field(path, pattern):
    return int(re.search(pattern, open(path).read())[1])
recorder = field(f"/proc/{{os.getppid()}}/status", r"PPid:\\s+(\\d+)")
def highest():
    return field(f"/proc/{{recorder}}/status", r"VmHWM:\\s+(\\d+)")
sys.stdout.buffer.write(bytes({MIB}))
sys.stdout.flush()
before = highest()
for _ in range({SIZE_MIB - 1}):
    sys.stdout.buffer.write(bytes({MIB}))
sys.stdout.flush()
print(highest() - before, file=sys.stderr)
"""


@pytest.mark.usefixtures("without_summary")
def test_the_status_of_a_command_that_is_killed_is_that_of_a_shell(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, _, _ = recorded(capfd, node.address, "-o", tmp_path / "run", "--", "sh", "-c", "kill -9 $$")
    assert code == 128 + signal.SIGKILL
    command = read_run(tmp_path / "run").command
    assert command is not None
    assert command.exit_code == 128 + signal.SIGKILL


@pytest.mark.usefixtures("without_summary")
def test_a_run_ends_with_its_command_even_if_processes_are_left_in_the_background(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # The first background process keeps the output open; the second one closes it and has a session of its own.
    script = "sleep 600 & echo $!; setsid sleep 600 >&- 2>&- & echo $!"
    code, out, errors = recorded(capfd, node.address, "-o", tmp_path / "run", "--", "sh", "-c", script)
    for pid in map(int, out.split()):
        os.kill(pid, signal.SIGKILL)
    assert (code, len(out.split())) == (0, 2), errors
    run = read_run(tmp_path / "run")
    assert run.end_s is not None
    assert run.end_s - run.begin_s < 60
    assert run.nodes[0].problem == ""


def test_memory_does_not_depend_on_the_length_of_the_output_or_of_its_lines(node: Node, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    options = ("--quiet", "--mark-regex", "level", "-o", str(folder), "--")
    process = subprocess.run(
        [sys.executable, "-m", "cli", "record", node.address, *options, sys.executable, "-c", PRINTING],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    grown_kib, *_ = process.stderr.splitlines()
    size = (folder / "command.log").stat().st_size
    (folder / "command.log").unlink()
    assert process.returncode == 0, process.stderr
    assert size == SIZE_MIB * MIB + len(f"{grown_kib}\n")
    assert int(grown_kib) < 16 * 1024


@pytest.mark.usefixtures("without_summary")
def test_output_in_another_encoding_is_unchanged_and_its_marks_are_readable(
    node: Node, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The pattern's group does not participate in the match, so the mark is the whole match."""
    output = b"\xff level \xe4 7\n\xc3"
    (tmp_path / "output").write_bytes(output)
    # Python decodes the byte 0xE4 in an argument as U+DCE4.
    options = ("--mark-regex", "(rate )?level \udce4 .", "-o", str(tmp_path / "run"))
    assert main(["record", node.address, *options, "--", "cat", str(tmp_path / "output")]) == 0
    printed = capfdbinary.readouterr()
    assert (printed.out, printed.err) == (output, b"")
    assert (tmp_path / "run" / "command.log").read_bytes() == output
    assert [mark.text for mark in read_run(tmp_path / "run").marks] == ["level \ufffd 7"]


def test_a_command_can_read_from_the_terminal(node: Node, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    script = "echo ready; read line; echo got $line; sleep 1.5; exit 3"
    arguments = ("record", node.address, "-o", str(folder), "--", "sh", "-c", script)
    with ControllingTerminal(100, *arguments) as terminal:
        terminal.read_until("ready")
        terminal.type("hello\n")
        code, _ = terminal.end(None)
    assert code == 3
    assert "0:00  waiting for the first interval" in terminal.text
    assert "got hello" in terminal.text
    assert terminal.lines[-1] == str(folder)
    assert (folder / "command.log").read_text() == "ready\nhello\ngot hello\n"

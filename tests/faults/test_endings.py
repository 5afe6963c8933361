"""The program's exit when a pipe is closed, the disk is full or a signal arrives."""

import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from tests.collector.node.log.logs import down
from tests.faults import faults
from tests.faults.fake_jolokia import FakeJolokia
from tests.faults.fake_node import Json
from tests.faults.program import PATIENCE_S, Program, command, environment, is_clean, within

REMOTE_NODE = "casstat: the node runs on another machine: "
FULL = Path("/dev/full")
FORMS = ["text", "json", "csv"]


@contextmanager
def running_process(*arguments: str, stdout: IO[bytes] | int | None) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command(*arguments), env=environment(), stdout=stdout, stderr=subprocess.PIPE)
    with process:
        try:
            yield process
        finally:
            process.kill()


def exit_of(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Wait for the process to exit; return the exit code, and stderr without the message about a remote node."""
    assert process.stderr is not None
    errors = process.stderr.read().decode()
    process.wait(PATIENCE_S)
    return process.returncode, "".join(line for line in errors.splitlines(True) if not line.startswith(REMOTE_NODE))


@pytest.mark.parametrize("form", FORMS)
def test_a_closed_pipe_ends_the_program_silently(form: str, fake: FakeJolokia) -> None:
    with running_process("0.1", "--format", form, "--jolokia", fake.url, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() != b""
        process.stdout.close()
        assert exit_of(process) == (0, "")


def test_events_after_the_pipe_is_closed_are_in_the_events_file(fake: FakeJolokia, tmp_path: Path) -> None:
    log, events = tmp_path / "system.log", tmp_path / "events.txt"
    log.write_bytes(b"")
    log_options = ["-d", str(log), "-l", str(events)]
    with running_process("0.5", *log_options, "--jolokia", fake.url, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        # Read the header and the first row, so that new log lines belong to the second row.
        assert process.stdout.readline() != b""
        assert process.stdout.readline() != b""
        log.write_bytes(down(2))
        process.stdout.close()
        assert exit_of(process) == (0, "")
    assert "10.0.0.2 is DOWN" in events.read_text()


def test_a_pipe_closed_before_the_first_row_ends_the_program_silently(fake: FakeJolokia) -> None:
    with running_process("0.1", "--jolokia", fake.url, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert exit_of(process) == (0, "")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["metrics"]])
def test_a_pipe_without_a_reader_ends_other_outputs_silently(arguments: list[str]) -> None:
    incoming, outgoing = os.pipe()
    os.close(incoming)
    with os.fdopen(outgoing, "wb") as out, running_process(*arguments, stdout=out) as process:
        assert exit_of(process) == (0, "")


@pytest.mark.parametrize("form", FORMS)
def test_a_full_disk_is_a_one_line_error_with_code_1(form: str, fake: FakeJolokia) -> None:
    with (
        FULL.open("wb") as full,
        running_process("0.1", "5", "--format", form, "--jolokia", fake.url, stdout=full) as process,
    ):
        code, errors = exit_of(process)
    assert code == 1
    assert re.fullmatch(r"casstat: .*No space left on device.*\n", errors)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["metrics"]])
def test_a_full_disk_is_a_one_line_error_for_other_outputs(arguments: list[str]) -> None:
    with FULL.open("wb") as full, running_process(*arguments, stdout=full) as process:
        code, errors = exit_of(process)
    assert code == 1
    assert re.fullmatch(r"casstat: .*No space left on device.*\n", errors)


@pytest.mark.parametrize("streams", ["1", "2", "12", "012"])
def test_closed_standard_streams_cause_no_traceback(streams: str, fake: FakeJolokia) -> None:
    closed = " ".join(f"{number}>&-" for number in streams)
    result = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *command("0.1", "2", "--jolokia", fake.url)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert "Traceback" not in result.stderr
    assert result.returncode == (0 if "1" not in streams else 1)
    assert len(result.stdout.splitlines()) == (0 if "1" in streams else 4)


@pytest.mark.alone
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_text_output_with_the_average(number: signal.Signals, fake: FakeJolokia) -> None:
    with Program("0.1", "--jolokia", fake.url) as program:
        program.line()
        for _ in range(3):
            program.line()
            fake.node.do_reads(100)
        code, errors = program.end(number)
        remaining = program.unread_lines()
    assert code == 0
    assert is_clean(errors)
    assert re.search(r"  # average over 0\.\d s\n$", remaining[-1])
    assert float(remaining[-1].split()[0]) > 0
    assert remaining[-1].split()[1] == "0.500"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_signal_ends_json_and_csv_after_a_complete_row(form: str, number: signal.Signals, fake: FakeJolokia) -> None:
    with Program("0.1", "--format", form, "--jolokia", fake.url) as program:
        program.line()
        program.line()
        code, errors = program.end(number)
        remaining = program.unread_lines()
    assert code == 0
    assert is_clean(errors)
    assert all(line.endswith("\n") and "verage" not in line for line in remaining)


@pytest.mark.alone
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_program_at_once_while_the_node_hangs(number: signal.Signals, fake: FakeJolokia) -> None:
    reached = threading.Event()
    with Program("5", "--jolokia", fake.url, "--format", "json") as program:
        # The node responds to the first request, but hangs at the first tick.
        fake.node.override = lambda _request, answer: answer_then_hang(fake, reached, answer)
        assert reached.wait(PATIENCE_S)
        with within(0.5):
            code, errors = program.end(number)
    assert code == 0
    assert is_clean(errors)


def answer_then_hang(fake: FakeJolokia, reached: threading.Event, answer: Json) -> Json:
    """Return the first response unchanged; make the node hang on every later POST request."""
    if fake.posts > 1:
        fake.fault = faults.signalling(reached, faults.hang)
    return answer


@pytest.mark.alone
@pytest.mark.parametrize(
    ("number", "message"),
    [(signal.SIGINT, "casstat: nothing measured yet: the node has not answered"), (signal.SIGTERM, "")],
)
def test_a_signal_during_the_first_request_ends_the_program_at_once(
    number: signal.Signals, message: str, fake: FakeJolokia
) -> None:
    reached = threading.Event()
    fake.fault = faults.signalling(reached, faults.hang)
    with Program("0.1", "--jolokia", fake.url) as program:
        assert reached.wait(PATIENCE_S)
        with within(0.5):
            code, errors = program.end(number)
    assert code in (0, 128 + number, -number)
    assert errors.strip() == message


def test_the_average_ignores_rows_without_values(fake: FakeJolokia) -> None:
    with Program("0.1", "-x", "--jolokia", fake.url) as program:
        program.line()
        fake.node.do_reads(1000)
        while "0.500" not in program.line():
            continue
        fake.fault = faults.close
        for _ in range(3):
            program.line()
        code, _ = program.end()
        average = program.unread_lines()[-1]
    assert code == 0
    assert average.split()[1] == "0.500"

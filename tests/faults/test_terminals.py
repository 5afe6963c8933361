"""Terminal output: rows fit the width, and colours appear only where the terminal supports them."""

import re
import signal

import pytest

from tests.faults import faults
from tests.faults.fake_jolokia import FakeJolokia
from tests.faults.fake_node import Json
from tests.faults.program import run
from tests.faults.terminal import Terminal, plain

COMPACTION: Json = {
    "compactionId": "7f",
    "keyspace": "a_keyspace",
    "columnfamily": "a_table",
    "taskType": "Compaction",
    "completed": "500",
    "total": "1000",
}
FLAGS = [["-t"], ["-e"], ["-s"], ["--wide", "-e"], ["-p"], ["-t", "-s", "-p"]]


@pytest.mark.parametrize("width", [40, 80, 132])
@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
def test_no_row_is_wider_than_the_terminal(flags: list[str], width: int, fake: FakeJolokia) -> None:
    fake.node.compactions = [{**COMPACTION, "compactionId": str(number)} for number in range(2)]
    with Terminal(width, "0.1", "3", "--jolokia", fake.url, *flags) as terminal:
        terminal.read(2)
        fake.node.do_reads(12_345)
        code, _ = terminal.end(None)
    assert code == 0
    assert [line for line in map(plain, terminal.lines) if len(line) > width] == []


@pytest.mark.parametrize("width", [24, 60])
@pytest.mark.parametrize("flags", [[], ["-t", "-s"]], ids=" ".join)
def test_no_row_is_wider_than_the_terminal_when_numbers_are_large(
    flags: list[str], width: int, fake: FakeJolokia
) -> None:
    with Terminal(width, "0.1", "6", "--jolokia", fake.url, *flags) as terminal:
        for rows in range(2, 6):
            terminal.read(rows)
            fake.node.do_reads(10**6, 90_000_000)
            fake.node.add("Write", 10**6, 90_000_000)
        code, _ = terminal.end(None)
    assert code == 0
    assert [line for line in map(plain, terminal.lines) if len(line) > width] == []


def test_the_header_and_a_countdown_precede_the_first_row(
    fake: FakeJolokia,
) -> None:
    with Terminal(200, "1h", "--jolokia", fake.url) as terminal:
        header = terminal.read(1)[0]
        terminal.read_until("first row in")
        code, errors = terminal.end()
    assert "Rds/s" in header
    assert "first row" not in header
    assert code == 0
    assert "first row in 3600 s" in terminal.text or "first row in 3601 s" in terminal.text
    message = "casstat: nothing measured yet: the first row takes at least one interval (3600 s)"
    assert errors.splitlines()[-1] == message


def test_hidden_columns_are_counted_and_the_wide_view_wraps(fake: FakeJolokia) -> None:
    with Terminal(80, "0.1", "2", "--jolokia", fake.url) as terminal:
        assert terminal.end(None)[0] == 0
    assert re.search(r"# \d of 15 columns do(es)? not fit \(hint: see --columns help\)", terminal.lines[0])
    with Terminal(80, "0.1", "2", "--jolokia", fake.url, "--wide", NO_COLOR="1") as terminal:
        assert terminal.end(None)[0] == 0
    interval = terminal.lines[: terminal.lines.index("")]
    # On a busy machine, the row ends with a note on the late tick, which may need lines of its own.
    cells = [line.partition("#")[0] for line in interval]
    assert len(" ".join(cells[::2]).split()) == len(" ".join(cells[1::2]).split()) > 50
    assert max(map(len, interval)) <= 80


def test_a_terminal_that_is_resized_gets_a_new_header_and_rows_that_fit(fake: FakeJolokia) -> None:
    with Terminal(120, "0.1", "--jolokia", fake.url) as terminal:
        before = len(terminal.read(3))
        terminal.resize(30)
        lines = terminal.read(before + 4)[before + 1 :]
        assert terminal.end()[0] == 0
    assert max(len(plain(line)) for line in lines) <= 30
    assert sum("Rds/s" in line for line in terminal.lines) == 2


def test_a_terminal_without_a_size_gets_rows(fake: FakeJolokia) -> None:
    with Terminal(0, "0.1", "3", "--jolokia", fake.url, lines=0) as terminal:
        assert terminal.end(None)[0] == 0
    # Expect the header, three rows and the average.
    assert len([line for line in map(plain, terminal.lines) if line]) == 5


@pytest.mark.alone
def test_the_header_is_repeated_on_every_screen(fake: FakeJolokia) -> None:
    # The terminal is wide enough for the annotation of a missed tick.
    with Terminal(200, "0.1", "13", "--jolokia", fake.url, lines=8) as terminal:
        assert terminal.end(None)[0] == 0
    assert [number for number, line in enumerate(terminal.lines) if "Rds/s" in line] == [0, 7, 14]


def test_a_terminal_gets_escape_sequences_for_colours(fake: FakeJolokia) -> None:
    fake.fault = faults.with_length
    with Terminal(200, "0.1", "2", "--jolokia", fake.url) as terminal:
        terminal.end(None)
    assert terminal.lines[0].startswith("\x1b[1m")


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("NO_COLOR", "0"), ("TERM", "dumb")])
def test_colours_can_be_switched_off(name: str, value: str, fake: FakeJolokia) -> None:
    with Terminal(100, "0.1", "--jolokia", fake.url, lines=24, **{name: value}) as terminal:
        terminal.read(2)
        fake.fault = faults.close
        terminal.read_until("connection closed")
        assert terminal.end()[0] == 0
    assert not any("\x1b" in line for line in terminal.lines)


def test_a_pipe_gets_no_colours_and_one_header(fake: FakeJolokia) -> None:
    fake.fault = faults.close
    result = run("0.1", "4", "--jolokia", fake.url, TERM="xterm-256color", COLUMNS="20", CLICOLOR_FORCE="1")
    # The exit code is 1 because Cassandra never answered.
    assert result.returncode == 1
    assert "\x1b" not in result.stdout + result.stderr
    header, *rows = result.stdout.splitlines()
    assert len(rows) == 5
    assert len(header) > 80


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_prints_the_average_on_a_separate_line(number: signal.Signals, fake: FakeJolokia) -> None:
    with Terminal(100, "0.1", "--jolokia", fake.url) as terminal:
        terminal.read(6)
        assert terminal.end(number)[0] == 0
    assert "# average over " in terminal.lines[-1]
    assert "" in terminal.lines[-3:-1]


def test_control_characters_from_a_server_are_not_printed(fake: FakeJolokia) -> None:
    with Terminal(100, "0.1", "--jolokia", fake.url, NO_COLOR="1") as terminal:
        terminal.read(2)
        fake.fault = faults.raw(b"HTTP/1.1 500 \x1b]0;owned\x07\x1b[2J\r\n\r\n")
        terminal.read_until("HTTP 500")
        code, errors = terminal.end()
    assert code == 0
    assert all(line.isprintable() for line in [*terminal.lines, *errors.splitlines()])

"""The line of a node that has nothing but nodetool, whatever that prints."""

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.faults.program import Program, Row, event_texts
from tests.real.programs import eventually

CAPTURES = Path(__file__).parent.parent / "captures" / "5.0.8" / "nodetool"
WARNING = "WARN  [main] 2026-11-21 12:00:00,000 JavaUtils.java:1 - objc[1]: Class is implemented in both"
TRACE = """error: null
-- StackTrace --
java.lang.NullPointerException
\tat org.apache.cassandra.tools.NodeProbe.getThing(NodeProbe.java:7)"""
# What it says as long as nothing is wrong; then the fault's lines come first.
SCRIPT = """#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift 2; done
if [ -e '{folder}/faulty' ]; then
{fault}
fi
case "$1" in
tablestats) cat '{captures}/tablestats.two.json' ;;
compactionstats) cat '{captures}/compactionstats.idle.txt' ;;
*) cat '{captures}'/"$1.txt" ;;
esac
"""
Line = Callable[[str], Program]


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """The file that makes the fault begin."""
    return tmp_path / "faulty"


@pytest.fixture
def line(tmp_path: Path) -> Line:
    """Return what runs the line with a nodetool that has a fault."""

    def run(fault: str) -> Program:
        path = tmp_path / "nodetool"
        path.write_text(SCRIPT.format(folder=tmp_path, captures=CAPTURES, fault=fault))
        path.chmod(0o755)
        options = ["--source", "nodetool", "--nodetool", str(path), "-m", "1"]
        return Program("0.2", "--format=json", "-s", *options)

    return run


def until(program: Program, fits: Callable[[Row], bool]) -> Row:
    """Return the next row that fits; the machine's own figures stand in all of them."""
    for number in range(120):
        row = program.row()
        assert row["cpu_idle_pct"] is not None or number == 0
        if fits(row):
            return row
    raise AssertionError(f"no such row; the last one is {row}")


def is_whole(row: Row) -> bool:
    """Return whether reads and percentiles are known."""
    return row["reads_per_s"] == 0.0 and row["read_p99_ms"] is not None


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (f"cat <<'X'\n{TRACE}\nX\nexit 2", "nodetool tablestats: error: null"),
        (f"cat >&2 <<'X'\n{TRACE}\nX\nexit 1", "nodetool tablestats: error: null"),
        (f"cat <<'X'\n{TRACE}\nX\nexit 0", "nodetool tablestats: nodetool says 'error: null' (and 1 more)"),
        ("exit 0", "nodetool tablestats: no output"),
        ("echo 'nodetool: Failed to connect - ConnectException'; exit 1", "nodetool tablestats: Failed to connect"),
        ("kill -9 $$", "nodetool tablestats: exit code -9"),
        ("head -c 100000 /dev/zero; exit 0", "nodetool tablestats: its last line has no end"),
    ],
)
def test_a_fault_is_told_in_one_line_and_over_when_it_is_over(line: Line, faulty: Path, fault: str, said: str) -> None:
    with line(fault) as program:
        until(program, is_whole)
        faulty.touch()
        row = until(program, lambda row: said in event_texts(row))
        assert len(event_texts(row).splitlines()) == 1
        assert row["reads_per_s"] is None
        faulty.unlink()
        until(program, is_whole)
        code, errors = program.end()
    assert code == 0
    assert "Traceback" not in errors


@pytest.mark.alone
@pytest.mark.parametrize("where", ["", ">&2"])
def test_warnings_before_its_output_are_none_of_it(line: Line, faulty: Path, where: str) -> None:
    faulty.touch()
    with line(f"cat {where} <<'X'\n{WARNING}\nX") as program:
        row = until(program, is_whole)
        assert event_texts(row) == ""


def test_what_another_languages_numbers_leave_in_doubt_is_absent(line: Line, faulty: Path) -> None:
    faulty.touch()
    with line(f"test \"$1\" != tablestats || exec cat '{CAPTURES}/tablestats.de.txt'") as program:
        row = until(program, lambda row: "is no decimal number ('0,10093'" in event_texts(row))
        rows = [row, *(program.row() for _ in range(5))]
    assert all(row["reads_per_s"] is None and row["read_mean_ms"] is None for row in rows)


def test_one_that_never_ends_holds_up_nothing_and_is_ended_with_the_line(line: Line, faulty: Path) -> None:
    with line("exec sleep 1234.5678") as program:
        until(program, is_whole)
        faulty.touch()
        row = until(program, lambda row: (row["cassandra_age_s"] or 0) > 2)
        assert row["reads_per_s"] is None
        code, errors = program.end()
    assert (code, "Traceback" in errors) == (0, False)
    eventually(lambda: not sleeping())


def sleeping() -> list[psutil.Process]:
    return [each for each in psutil.process_iter(["cmdline"]) if "1234.5678" in (each.info["cmdline"] or ())]


def test_what_is_no_nodetool_is_told_and_the_machine_is_watched(tmp_path: Path) -> None:
    nothing = str(tmp_path / "nodetool")
    with Program("0.2", "2", "--format=json", "--source", "nodetool", "--nodetool", nothing) as program:
        rows = [program.row(), program.row()]
        code, errors = program.end(None)
    assert code == 1
    assert f"{nothing}: No such file or directory (hint: give --nodetool PATH)" in errors
    assert all(row["reads_per_s"] is None for row in rows)
    assert rows[1]["cpu_idle_pct"] is not None


def test_a_password_file_that_others_can_read_is_told(tmp_path: Path) -> None:
    passwords = tmp_path / "jmx.password"
    passwords.write_text("me hunter2\n")
    options = ["--source", "nodetool", "--nodetool", str(tmp_path / "none"), "--jmx-password-file", str(passwords)]
    for mode, told in ((0o644, True), (0o600, False)):
        passwords.chmod(mode)
        with Program("0.2", "1", "--jmx-user", "me", *options) as program:
            code, errors = program.end(None)
        assert code == 1
        assert (f"{passwords}: can be read by others: chmod 600 {passwords}" in errors) == told
        assert "hunter2" not in errors

"""The default command with nodetool as its only Cassandra source, and with nodetool faults."""

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.faults.program import Program, Row, event_texts
from tests.waiting import eventually

CAPTURES = Path(__file__).parent.parent / "captures" / "5.0.8" / "nodetool"
WARNING = "WARN  [main] 2026-11-21 12:00:00,000 JavaUtils.java:1 - objc[1]: Class is implemented in both"
TRACE = """error: null
-- StackTrace --
java.lang.NullPointerException
\tat org.apache.cassandra.tools.NodeProbe.getThing(NodeProbe.java:7)"""
# A nodetool that prints captured reports. While the file `faulty` exists, it first runs shell commands that simulate a
# fault.
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
    """Return the path of the file that switches the fault on while it exists."""
    return tmp_path / "faulty"


@pytest.fixture
def line(tmp_path: Path) -> Line:
    """Return a function that starts `casstat` with a nodetool that has the given fault while `faulty` exists."""

    def run(fault: str) -> Program:
        path = tmp_path / "nodetool"
        path.write_text(SCRIPT.format(folder=tmp_path, captures=CAPTURES, fault=fault))
        path.chmod(0o755)
        options = ["--source", "nodetool", "--nodetool", str(path), "-m", "1"]
        return Program("0.2", "--format=json", "-s", *options)

    return run


def until(program: Program, fits: Callable[[Row], bool]) -> Row:
    """Return the first new row for which `fits` returns true; all rows but the first must have host values."""
    for number in range(120):
        row = program.row()
        assert row["cpu_idle_pct"] is not None or number == 0
        if fits(row):
            return row
    raise AssertionError(f"no such row; the last row is {row}")


def is_complete(row: Row) -> bool:
    """Return whether a row has percentiles and a read rate, which is 0 between identical reports."""
    return row["reads_per_s"] == 0.0 and row["read_p99_ms"] is not None


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (f"cat <<'X'\n{TRACE}\nX\nexit 2", "nodetool tablestats: error: null"),
        (f"cat >&2 <<'X'\n{TRACE}\nX\nexit 1", "nodetool tablestats: error: null"),
        (f"cat <<'X'\n{TRACE}\nX\nexit 0", "nodetool tablestats: nodetool printed 'error: null' (and 1 more)"),
        ("exit 0", "nodetool tablestats: no output"),
        ("echo 'nodetool: Failed to connect - ConnectException'; exit 1", "nodetool tablestats: Failed to connect"),
        ("kill -9 $$", "nodetool tablestats: exit code -9"),
        ("head -c 100000 /dev/zero; exit 0", "nodetool tablestats: the last line is truncated"),
    ],
)
def test_a_fault_is_reported_in_one_line_until_it_ends(line: Line, faulty: Path, fault: str, message: str) -> None:
    with line(fault) as program:
        until(program, is_complete)
        faulty.touch()
        row = until(program, lambda row: message in event_texts(row))
        assert len(event_texts(row).splitlines()) == 1
        assert row["reads_per_s"] is None
        faulty.unlink()
        until(program, is_complete)
        code, errors = program.end()
    assert code == 0
    assert "Traceback" not in errors


@pytest.mark.alone
@pytest.mark.parametrize("redirection", ["", ">&2"])
def test_warnings_before_the_report_are_ignored(line: Line, faulty: Path, redirection: str) -> None:
    faulty.touch()
    with line(f"cat {redirection} <<'X'\n{WARNING}\nX") as program:
        row = until(program, is_complete)
        assert event_texts(row) == ""


def test_numbers_in_another_locale_are_reported_and_absent(line: Line, faulty: Path) -> None:
    faulty.touch()
    with line(f"test \"$1\" != tablestats || exec cat '{CAPTURES}/tablestats.de.txt'") as program:
        row = until(program, lambda row: "is not a decimal number ('0,10093'" in event_texts(row))
        rows = [row, *(program.row() for _ in range(5))]
    assert all(row["reads_per_s"] is None and row["read_mean_ms"] is None for row in rows)


def test_a_hanging_nodetool_delays_no_row_and_is_killed_with_the_program(line: Line, faulty: Path) -> None:
    with line("exec sleep 1234.5678") as program:
        until(program, is_complete)
        faulty.touch()
        row = until(program, lambda row: (row["cassandra_age_s"] or 0) > 2)
        assert row["reads_per_s"] is None
        code, errors = program.end()
    assert (code, "Traceback" in errors) == (0, False)
    eventually(lambda: not sleeping())


def sleeping() -> list[psutil.Process]:
    return [p for p in psutil.process_iter(["cmdline"]) if "1234.5678" in (p.info["cmdline"] or ())]


def test_a_missing_nodetool_is_an_error_and_rows_have_host_values(tmp_path: Path) -> None:
    missing = str(tmp_path / "nodetool")
    with Program("0.2", "2", "--format=json", "--source", "nodetool", "--nodetool", missing) as program:
        rows = [program.row(), program.row()]
        code, errors = program.end(None)
    assert code == 1
    assert f"{missing}: No such file or directory (hint: use --nodetool PATH; " in errors
    assert all(row["reads_per_s"] is None for row in rows)
    assert rows[1]["cpu_idle_pct"] is not None


def test_a_password_file_readable_by_others_is_refused(tmp_path: Path) -> None:
    passwords = tmp_path / "jmx.password"
    passwords.write_text("me hunter2\n")
    options = ["--source", "nodetool", "--nodetool", str(tmp_path / "none"), "--jmx-password-file", str(passwords)]
    for mode, is_refused in ((0o644, True), (0o600, False)):
        passwords.chmod(mode)
        with Program("0.2", "1", "--jmx-user", "me", *options) as program:
            code, errors = program.end(None)
        assert code == 1
        assert (f"{passwords}: accessible to other users (hint: run 'chmod 600 {passwords}')" in errors) == is_refused
        assert "hunter2" not in errors

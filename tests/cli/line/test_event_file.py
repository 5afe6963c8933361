"""The event file: its lines are complete even on a full disk, and lost events are counted."""

import os
import re
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli.errors import CasstatError
from cli.line.line_recorder import EventFile
from tests.collector.fakes import file_size_limit

LINES = st.lists(st.lists(st.text("ab", max_size=9), max_size=4), max_size=8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.txt"


def written(path: Path, *appends: list[str], report: Callable[[str], None] = pytest.fail) -> str:
    with closing(EventFile(path, report)) as file:
        for lines in appends:
            file.append(lines)
    return path.read_text()


def test_lines_are_appended_to_an_existing_file(path: Path) -> None:
    path.write_text("before\n")
    assert written(path, ["a", "b"], [], ["c"]) == "before\na\nb\nc\n"


def test_a_partial_last_line_is_terminated_first(path: Path) -> None:
    path.write_text("half a li")
    assert written(path, ["a"]) == "half a li\na\n"


def test_surrogates_are_replaced(path: Path) -> None:
    assert written(path, ["a\udcff"]) == "a?\n"


@given(appends=LINES, size=st.integers(0, 60), later=LINES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_on_a_full_disk_lines_stay_complete_and_lost_lines_are_counted(
    path: Path, appends: list[list[str]], size: int, later: list[list[str]]
) -> None:
    path.unlink(missing_ok=True)
    messages: list[str] = []
    numbered = iter(range(1000))
    all_lines = [[f"{next(numbered)} {line}" for line in lines] for lines in (*appends, *later)]
    with closing(EventFile(path, messages.append)) as file:
        with file_size_limit(size):
            for lines in all_lines[: len(appends)]:
                file.append(lines)
        for lines in all_lines[len(appends) :]:
            file.append(lines)
        file.append(["last"])
    written_lines = path.read_text().splitlines()
    assert written_lines[-1] == "last"
    assert set(written_lines[:-1]) <= {line for lines in all_lines for line in lines}
    lost = sum(int(number) for text in messages for number in re.findall(r"(\d+) events? lost", text))
    assert len(written_lines) - 1 + lost == sum(map(len, all_lines))
    assert sum("events will be lost until" in text for text in messages) == sum("again;" in text for text in messages)


def test_close_reports_lost_events(path: Path) -> None:
    messages: list[str] = []
    with closing(EventFile(Path("/dev/full"), messages.append)) as file:
        file.append(["a", "b"])
        file.append(["c"])
    assert messages == [
        "/dev/full: No space left on device: events will be lost until the file is writable again",
        "/dev/full: 3 events lost",
    ]


@pytest.mark.parametrize("kind", ["folder", "fifo", "missing folder"])
def test_other_file_types_are_rejected_at_once(path: Path, kind: str) -> None:
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
        assert stat.S_ISFIFO(path.stat().st_mode)
    else:
        path = path / "missing" / "events.txt"
    with pytest.raises(CasstatError, match="cannot write events"):
        EventFile(path, pytest.fail)

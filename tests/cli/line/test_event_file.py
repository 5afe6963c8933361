"""The file of events: whole lines, whatever the disk does, and every lost one counted."""

import os
import re
import resource
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli.errors import CasstatError
from cli.line.event_file import EventFile

LINES = st.lists(st.lists(st.text("ab", max_size=9), max_size=4), max_size=8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.txt"


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Let no file grow beyond `size` bytes: what is beyond is refused as on a full disk, within a line too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def written(path: Path, *appends: list[str], say: Callable[[str], None] = pytest.fail) -> str:
    with closing(EventFile(path, say)) as file:
        for lines in appends:
            file.append(lines)
    return path.read_text()


def test_lines_are_appended_to_what_is_there(path: Path) -> None:
    path.write_text("before\n")
    assert written(path, ["a", "b"], [], ["c"]) == "before\na\nb\nc\n"


def test_a_line_that_somebody_left_unfinished_is_ended_first(path: Path) -> None:
    path.write_text("half a li")
    assert written(path, ["a"]) == "half a li\na\n"


def test_letters_that_cannot_be_written_do_no_harm(path: Path) -> None:
    assert written(path, ["a\udcff"]) == "a?\n"


@given(appends=LINES, size=st.integers(0, 60), later=LINES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_on_a_full_disk_lines_are_whole_and_the_lost_ones_counted(
    path: Path, appends: list[list[str]], size: int, later: list[list[str]]
) -> None:
    path.unlink(missing_ok=True)
    said: list[str] = []
    numbered = iter(range(1000))
    every = [[f"{next(numbered)} {line}" for line in lines] for lines in (*appends, *later)]
    with closing(EventFile(path, said.append)) as file:
        with room_for(size):
            for lines in every[: len(appends)]:
                file.append(lines)
        for lines in every[len(appends) :]:
            file.append(lines)
        file.append(["last"])
    found = path.read_text().splitlines()
    assert found[-1] == "last"
    assert set(found[:-1]) <= {line for lines in every for line in lines}
    lost = sum(int(number) for text in said for number in re.findall(r"(\d+) events were lost", text))
    assert len(found) - 1 + lost == sum(map(len, every))
    assert sum("events are lost until" in text for text in said) == sum("again;" in text for text in said)


def test_what_was_lost_when_it_ends_is_said(path: Path) -> None:
    said: list[str] = []
    with closing(EventFile(Path("/dev/full"), said.append)) as file:
        file.append(["a", "b"])
        file.append(["c"])
    assert said == [
        "/dev/full: No space left on device: events are lost until writing succeeds again",
        "/dev/full: 3 events were lost",
    ]


@pytest.mark.parametrize("kind", ["folder", "fifo", "nowhere"])
def test_what_is_no_file_is_refused_at_once(path: Path, kind: str) -> None:
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
        assert stat.S_ISFIFO(path.stat().st_mode)
    else:
        path = path / "missing" / "events.txt"
    with pytest.raises(CasstatError, match="cannot write events"):
        EventFile(path, pytest.fail)

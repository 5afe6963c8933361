"""The log is followed from its end, whatever is done to the file meanwhile, and at a bounded cost."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from collector.log import file_follower
from collector.log.log_source import MOST_BYTES, MOST_EVENTS
from collector.model.snapshot import SourceError
from tests.collector.log.logs import Log, down, open_files, said
from tests.collector.zones import local_zone


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "system.log"


@pytest.fixture
def log(path: Path) -> Iterator[Log]:
    found = Log(path, down(1))
    yield found
    found.source.close()
    assert not any(str(path) in name for name in open_files())


def test_what_stands_there_at_first_sight_is_not_told(log: Log) -> None:
    assert log.told() == []
    log.write(down(2) + b"\tat a.b.C\n" + down(3))
    assert log.told() == said(2, 3)
    assert log.told() == []


def test_events_say_when_and_what(log: Log) -> None:
    log.write(down(2))
    with local_zone("UTC0"):
        (event,) = log.read().events
    assert (event.kind, event.time_s) == ("node_down", 1795264363.007)


def test_half_a_line_waits_for_its_rest(log: Log) -> None:
    line = down(2)
    for place in range(len(line) - 1):
        log.write(line[place : place + 1])
        assert log.told() == []
    log.write(b"\n")
    assert log.told() == said(2)


def test_a_line_that_was_begun_before_the_first_sight_is_not_taken_for_another(path: Path) -> None:
    log = Log(path, b"INFO  [main] 2026-11-21 12:32:43,007 A.java:1 - user said ")
    log.write(down(2) + down(3))
    assert log.told() == said(3)


def test_other_line_ends_and_bytes_that_are_no_text(log: Log) -> None:
    noise = bytes(range(256)) * 20
    log.write(b"\xff\xfe\x00\n" + down(2).replace(b"\n", b"\r\n") + noise + b"\n" + down(3))
    assert log.told() == said(2, 3)


def test_rotation(log: Log) -> None:
    log.write(down(2))
    for number in range(3, 6):
        log.path.rename(log.path.with_suffix(f".{number}"))
        log.path.write_bytes(down(10 * number))
        assert log.told() == said(number - 1 if number == 3 else 10 * (number - 1) + 1, 10 * number)
        log.write(down(10 * number + 1))


def test_the_last_lines_of_a_rotated_log_come_first(log: Log) -> None:
    log.path.rename(log.path.with_suffix(".1"))
    log.path.write_bytes(down(4))
    with log.path.with_suffix(".1").open("ab") as old:
        old.write(down(2) + down(3) + b"half a line without its en")
    assert log.told() == said(2, 3, 4)


def test_a_rotated_log_is_written_to_until_there_is_a_new_one(log: Log) -> None:
    log.path.rename(log.path.with_suffix(".1"))
    assert log.told() == []
    with log.path.with_suffix(".1").open("ab") as old:
        old.write(down(2))
    assert log.told() == said(2)
    log.path.write_bytes(down(3))
    assert log.told() == said(3)


@pytest.mark.parametrize("after", [b"", down(2), down(2) * 3, b"x" * 1000])
def test_a_log_that_is_cut_begins_anew(log: Log, after: bytes) -> None:
    log.write(b"x" * 500)
    assert log.told() == []
    os.truncate(log.path, 0)
    log.write(after)
    numbers = [2] * after.count(b"DOWN")
    assert log.told() == said(*numbers)
    log.write(b"\n" + down(3))
    assert log.told() == said(3)


def test_a_log_that_is_written_anew_in_place_begins_anew(log: Log) -> None:
    with log.path.open("r+b") as file:
        file.write(down(7) + down(8))
    assert log.told() == said(7, 8)


def test_a_log_that_comes_later_is_read_from_its_start(path: Path) -> None:
    log = Log(path, None)
    for _ in range(2):
        with pytest.raises(SourceError, match=r"system\.log: no such file \(yet\)"):
            log.read()
    path.write_bytes(down(1) + down(2))
    assert log.told() == said(1, 2)


def test_a_log_that_goes_and_comes_back(log: Log) -> None:
    log.write(down(2))
    log.path.unlink()
    assert log.told() == said(2)
    # Something may still be added to it, by whoever has it open.
    log.clock.busy(file_follower.REMOVED_GRACE_S)
    with pytest.raises(SourceError, match="no such file"):
        log.read()
    log.path.write_bytes(down(3))
    assert log.told() == said(3)


@pytest.mark.parametrize(("make", "what"), [(Path.mkdir, "a directory"), (os.mkfifo, "not a regular file")])
def test_what_is_no_file_is_told_without_waiting_for_it(path: Path, make: Callable[[Path], None], what: str) -> None:
    make(path)
    log = Log(path, None)
    for _ in range(2):
        with pytest.raises(SourceError, match=rf"system\.log: {what} \(hint: give the log file\)"):
            log.read()
    assert not any(str(path) in name for name in open_files())


def test_a_log_that_may_not_be_read_is_told(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    log.source.close()
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refused)
        with pytest.raises(SourceError, match=r"permission denied \(hint: run casstat as a user who can read it\)"):
            log.read()
    log.path.write_bytes(down(2))
    assert log.told() == []


def test_of_50_gigabytes_only_what_is_added_is_read(path: Path) -> None:
    path.touch()
    os.truncate(path, 50 << 30)
    log = Log(path, None)
    assert log.told() == []
    log.write(b"\n" + down(2))
    assert log.told() == said(2)
    log.source.close()


def test_much_at_once_is_read_in_several_ticks(log: Log) -> None:
    log.write(b"x" * (MOST_BYTES + 1) + b"\n" + down(2))
    assert log.told() == []
    assert log.told() == said(2)


def test_more_than_can_be_caught_up_with_is_skipped_and_told(log: Log) -> None:
    with log.path.open("r+b") as file:
        file.truncate(file_follower.MAX_BACKLOG_BYTES + 1000)
    (skipped,) = log.told()
    assert skipped == "skipped 64.0 MiB of system.log: backlog too large"
    log.write(b"\n" + down(2))
    assert log.told() == said(2)


def test_of_many_events_the_last_ones_are_counted(log: Log) -> None:
    log.write(down(2) * (MOST_EVENTS + 20))
    *told, more = log.told()
    assert told == said(*[2] * MOST_EVENTS)
    assert more == "and 20 more events: 20 node_down"

"""The log is followed from its end, through rotation and truncation, at a bounded cost."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from collector.model.snapshot import SourceError
from collector.node.log import log_source
from collector.node.log.log_source import MAX_BYTES, MAX_EVENTS
from collector.node.log.logback import tail_lines
from tests.collector.node.log.logs import Log, down, open_files, texts
from tests.collector.zones import local_zone


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "system.log"


@pytest.fixture
def log(path: Path) -> Iterator[Log]:
    log = Log(path, down(1))
    yield log
    log.source.close()
    assert not any(str(path) in name for name in open_files())


def test_existing_lines_are_skipped(log: Log) -> None:
    assert log.events() == []
    log.write(down(2) + b"\tat a.b.C\n" + down(3))
    assert log.events() == texts(2, 3)
    assert log.events() == []


def test_events_have_a_kind_and_a_time(log: Log) -> None:
    log.write(down(2))
    with local_zone("UTC0"):
        (event,) = log.read().events
    assert (event.kind, event.time_s) == ("node_down", 1795264363.007)


OTHER = b"INFO  [main] 2026-10-07T02:03:33,975 StorageService.java:300 - DRAINED\n"
TRACE = b"java.io.IOException: closed\n" + b"\tat a.b.C(C.java:1)\n" * 200 + b"Caused by: a.B: c\n\t... 3 more\n\n"


def mismatches(log: Log, reads: int = 3) -> list[str]:
    """Read the log, and return the texts of the events about its pattern."""
    events = [event for _ in range(reads) for event in log.read().events]
    return [event.text for event in events if event.kind == "log_pattern"]


def test_a_log_whose_lines_do_not_match_is_reported_once(path: Path) -> None:
    log = Log(path, None, hint="do this")
    path.write_bytes(OTHER * 5)
    assert mismatches(log) == [
        "system.log: none of the 5 lines read so far matches the log's pattern, so it has no events (hint: do this)"
    ]
    log.write(OTHER * 500)
    assert mismatches(log) == []


def test_lines_that_do_not_match_are_counted_from_the_beginning_of_an_empty_log(log: Log) -> None:
    log.path.write_bytes(b"")
    for _ in range(2):
        log.write(OTHER)
        assert mismatches(log) == []
    log.write(OTHER)
    (text,) = mismatches(log)
    assert "none of the 3 lines" in text


def test_a_log_that_is_created_later_is_checked(path: Path) -> None:
    log = Log(path, None)
    with pytest.raises(SourceError):
        log.read()
    path.write_bytes(down(1) + TRACE)
    assert mismatches(log) == []
    path.rename(path.with_suffix(".1"))
    path.write_bytes(OTHER * 3)
    assert len(mismatches(log)) == 1


def test_stack_traces_and_some_other_lines_are_no_mismatch(log: Log) -> None:
    log.write(TRACE + OTHER * 3 + down(2) + TRACE + OTHER * 99 + down(3))
    assert mismatches(log) == []


def test_a_dump_of_threads_is_no_mismatch(log: Log) -> None:
    thread = (
        b'"ReadStage-1" #90 daemon prio=5 os_prio=0 tid=0x1 nid=0x2 waiting on condition  [0x3]\n'
        b"   java.lang.Thread.State: WAITING (parking)\n\tat sun.misc.Unsafe.park(Native Method)\n\n"
        b"   Locked ownable synchronizers:\n\t- None\n\n"
    )
    log.write(down(2) + b"Full thread dump OpenJDK 64-Bit Server VM (17.0.1 mixed mode):\n\n" + thread * 300)
    assert mismatches(log) == []


def test_a_pattern_that_changes_in_a_running_log_is_reported_again_after_it_matched(log: Log) -> None:
    for _ in range(2):
        log.write(OTHER * 100)
        assert mismatches(log) == [
            "system.log: none of the last 100 lines matches the log's pattern, so they have no events"
        ]
        log.write(down(2))
        assert mismatches(log) == []


def test_after_a_rotation_a_pattern_that_does_not_match_is_reported(log: Log) -> None:
    log.path.rename(log.path.with_suffix(".1"))
    log.path.write_bytes(TRACE + OTHER * 3)
    assert len(mismatches(log)) == 1


def test_a_partial_line_waits_for_its_end(log: Log) -> None:
    line = down(2)
    for index in range(len(line) - 1):
        log.write(line[index : index + 1])
        assert log.events() == []
    log.write(b"\n")
    assert log.events() == texts(2)


def test_the_rest_of_a_line_begun_before_the_start_is_skipped(path: Path) -> None:
    log = Log(path, b"INFO  [main] 2026-11-21 12:32:43,007 A.java:1 - user said ")
    log.write(down(2) + down(3))
    assert log.events() == texts(3)


def test_crlf_and_binary_data_are_tolerated(log: Log) -> None:
    noise = bytes(range(256)) * 20
    log.write(b"\xff\xfe\x00\n" + down(2).replace(b"\n", b"\r\n") + noise + b"\n" + down(3))
    assert log.events() == texts(2, 3)


def test_rotated_logs_are_followed(log: Log) -> None:
    log.write(down(2))
    for number in range(3, 6):
        log.path.rename(log.path.with_suffix(f".{number}"))
        log.path.write_bytes(down(10 * number))
        assert log.events() == texts(number - 1 if number == 3 else 10 * (number - 1) + 1, 10 * number)
        log.write(down(10 * number + 1))


def test_the_last_lines_of_a_rotated_log_come_first(log: Log) -> None:
    log.path.rename(log.path.with_suffix(".1"))
    log.path.write_bytes(down(4))
    with log.path.with_suffix(".1").open("ab") as old:
        old.write(down(2) + down(3) + b"half a line without its en")
    assert log.events() == texts(2, 3, 4)


def test_a_renamed_log_is_followed_until_a_new_one_exists(log: Log) -> None:
    log.path.rename(log.path.with_suffix(".1"))
    assert log.events() == []
    with log.path.with_suffix(".1").open("ab") as old:
        old.write(down(2))
    assert log.events() == texts(2)
    log.path.write_bytes(down(3))
    assert log.events() == texts(3)


@pytest.mark.parametrize("after", [b"", down(2), down(2) * 3, b"x" * 1000])
def test_a_truncated_log_is_read_from_its_start(log: Log, after: bytes) -> None:
    log.write(b"x" * 500)
    assert log.events() == []
    os.truncate(log.path, 0)
    log.write(after)
    numbers = [2] * after.count(b"DOWN")
    assert log.events() == texts(*numbers)
    log.write(b"\n" + down(3))
    assert log.events() == texts(3)


def test_a_log_overwritten_in_place_is_read_from_its_start(log: Log) -> None:
    with log.path.open("r+b") as file:
        file.write(down(7) + down(8))
    assert log.events() == texts(7, 8)


def test_a_log_created_later_is_read_from_its_start(path: Path) -> None:
    log = Log(path, None)
    for _ in range(2):
        with pytest.raises(SourceError, match=r"system\.log: no such file yet"):
            log.read()
    path.write_bytes(down(1) + down(2))
    assert log.events() == texts(1, 2)


def test_a_removed_log_is_an_error_until_it_is_created_again(log: Log) -> None:
    log.write(down(2))
    log.path.unlink()
    assert log.events() == texts(2)
    # Until the grace period ends, a process that still has the removed file open may write to it.
    log.clock.busy(log_source.REMOVED_GRACE_S)
    with pytest.raises(SourceError, match="no such file"):
        log.read()
    log.path.write_bytes(down(3))
    assert log.events() == texts(3)


@pytest.mark.parametrize(("make", "file_type"), [(Path.mkdir, "is a directory"), (os.mkfifo, "not a regular file")])
def test_a_directory_or_a_pipe_is_an_error(path: Path, make: Callable[[Path], None], file_type: str) -> None:
    make(path)
    log = Log(path, None)
    for _ in range(2):
        with pytest.raises(SourceError, match=rf"system\.log: {file_type} \(hint: specify the log file\)"):
            log.read()
    assert not any(str(path) in name for name in open_files())


def test_an_unreadable_log_is_an_error(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    log.source.close()
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refused)
        with pytest.raises(SourceError, match=r"permission denied \(hint: run casstat as a user who can read it\)"):
            log.read()
    log.path.write_bytes(down(2))
    assert log.events() == []


def test_only_the_new_lines_of_a_50_gib_log_are_read(path: Path) -> None:
    path.touch()
    os.truncate(path, 50 << 30)
    log = Log(path, None)
    assert log.events() == []
    log.write(b"\n" + down(2))
    assert log.events() == texts(2)
    log.source.close()


def test_many_new_lines_are_read_over_several_ticks(log: Log) -> None:
    log.write(b"x" * (MAX_BYTES + 1) + b"\n" + down(2))
    assert log.events() == []
    assert log.events() == texts(2)


def test_a_large_backlog_is_skipped_and_reported(log: Log) -> None:
    with log.path.open("r+b") as file:
        file.truncate(log_source.MAX_BACKLOG_BYTES + 1000)
    (skipped,) = log.events()
    assert skipped == "skipped 64.0 MiB of system.log: backlog too large"
    log.write(b"\n" + down(2))
    assert log.events() == texts(2)


def test_events_above_the_limit_are_counted(log: Log) -> None:
    log.write(down(2) * (MAX_EVENTS + 20))
    *events, more = log.events()
    assert events == texts(*[2] * MAX_EVENTS)
    assert more == "and 20 more events: 20 node_down"


@pytest.mark.parametrize(
    ("content", "lines"),
    [(b"", []), (b"a", []), (b"\n", [""]), (b"a\nb", ["a"]), (b"a\r\nb\n", ["a", "b"]), (b"a\x0bb\n", ["a\x0bb"])],
)
def test_the_complete_lines_at_the_end_of_a_log(path: Path, content: bytes, lines: list[str]) -> None:
    path.write_bytes(content)
    assert tail_lines(path) == lines

"""The recording of the machine on which the command runs."""

import sys
from pathlib import Path
from threading import Thread

import pytest

from cli.record.clients import local_client_host
from cli.record.clients.local_client_host import LocalClientHost
from cli.record.command.output_observers import OutputObserver
from cli.record.command.supervised_command import TimeLimit
from collector.merge.recordings import sessions
from collector.node.host import busy_processes
from collector.node.host.busy_processes import THREAD_CPU_TIME
from collector.recording.header import MAX_SERIES, SeriesLimit
from collector.recording.reader import Entry
from collector.recording.trimming import extent_of
from collector.recording.writer import files_of
from tests.collector.fakes import file_size_limit
from tests.output_copy import OutputCopy
from tests.waiting import eventually

# Uses the CPU until a file exists.
PROGRAM = "import os, sys\nwhile not os.path.exists(sys.argv[1]): pass"


def test_ticks_that_cannot_be_written_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(local_client_host, "INTERVAL_S", 0.1)
    printed: list[str] = []

    def has_printed(text: str) -> bool:
        printed.append(capsys.readouterr().err)
        return text in "".join(printed)

    with LocalClientHost(("true",), "run", tmp_path) as host:
        eventually(lambda: host.entries()[0].ticks)
        with file_size_limit(1):
            eventually(lambda: has_printed("recording is suspended"))
        eventually(lambda: has_printed("lost so far"))
    (entry,) = host.entries()
    (file,) = files_of(tmp_path / entry.folder)
    span = extent_of(file, 0.0, float("inf")).span
    assert (entry.ticks, entry.begin_s, entry.end_s) == (span.ticks, span.begin_s, span.end_s)


def test_the_busiest_thread_of_the_command_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_client_host, "INTERVAL_S", 0.1)
    monkeypatch.setattr(busy_processes, "SCAN_INTERVAL_S", 0.1)
    end = tmp_path / "end"

    def wait_for_thread(folder: Path) -> None:
        try:
            eventually(lambda: recorded_threads(folder))
        finally:
            end.touch()

    with LocalClientHost((sys.executable, "-c", PROGRAM, str(end)), "run", tmp_path / "run") as host:
        waiting = Thread(target=wait_for_thread, args=(tmp_path / "run" / host.entries()[0].folder,))
        waiting.start()
        result = host.run(OutputCopy(), OutputObserver(), TimeLimit())
        waiting.join()
    assert result.exit_code == 0
    ((process, pid, tid, _),) = recorded_threads(tmp_path / "run" / host.entries()[0].folder)
    assert process.startswith("python")
    assert pid == tid


def recorded_threads(folder: Path) -> set[tuple[str, ...]]:
    """Return the labels of the threads that have been recorded so far."""
    return {
        series[1:]
        for session in sessions([folder])[0]
        for record in session.read(SeriesLimit(MAX_SERIES, "c"))
        if isinstance(record, Entry)
        for scrape in record.snapshot.scrapes
        for series in scrape.values
        if series[0] == THREAD_CPU_TIME.name
    }

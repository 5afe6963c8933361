"""The recording of the machine on which the command runs."""

from pathlib import Path

import pytest

from cli.runs.clients import local_client_host
from cli.runs.clients.local_client_host import LocalClientHost
from collector.journal.trim_extent import extent_of
from collector.journal.writer import files_of
from tests.collector.fakes import file_size_limit
from tests.waiting import eventually


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

"""The agent logs and counts what an upload reports."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from cli.agent.sink_threads import Ended, JournalUploads, run_upload
from collector.recording.journal_upload import JournalUpload
from collector.recording.object_store import ObjectStoreError
from collector.recording.writer import files_of
from exporters.sinks.shipping.tick_queue import upload_checkpoint
from tests.collector.recording.recorder import CountingStore, Recorder


def test_lost_ticks_are_logged_and_counted(tmp_path: Path) -> None:
    recorder, store = Recorder(tmp_path / "journal", file_s=100), CountingStore(tmp_path / "store")
    recorder.record(250)
    state = tmp_path / "state"

    def run(_: Sequence[str], __: float) -> Ended:
        notes: list[str] = []
        checkpoint = upload_checkpoint(state, store.name, "n1")
        upload = JournalUpload(recorder.folder, store, "n1", checkpoint, notes.append)
        try:
            while upload.upload_next():
                pass
        except ObjectStoreError as error:
            return Ended(str(error), notes)
        return Ended(notes=notes)

    def session() -> tuple[list[str], JournalUploads]:
        lines: list[str] = []
        uploads = JournalUploads(store.name, recorder.folder, "n1", state, lines.append, run)
        uploads.stop()
        uploads.start()
        uploads.wait(60.0)
        return lines, uploads

    store.failure = "down"
    lines, uploads = session()
    assert lines == [f"{store.name}: down"]
    store.failure = ""
    first = files_of(recorder.folder)[0]
    first.unlink()
    lines, uploads = session()
    assert [line.partition(" before 2")[0] for line in lines] == [
        f"{first}: deleted before all of it was uploaded: lost at most 100 ticks"
    ]
    assert uploads.health().lost_ticks == 100
    assert uploads.health().up
    # The total is that of the agent's own time.
    lines, uploads = session()
    assert lines == []
    assert uploads.health().lost_ticks == 0


def test_the_lines_of_an_upload_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.agent.sink_threads.casstat_command", lambda *words: ["sh", "-c", words[1]])
    assert run_upload(["echo casstat: a >&2; echo casstat: b >&2"], 60.0) == Ended(notes=["a", "b"])
    assert run_upload(["echo casstat: a >&2; echo casstat: b >&2; exit 1"], 60.0) == Ended("b", ["a"])
    assert run_upload(["exit 1"], 60.0) == Ended("exit code 1")

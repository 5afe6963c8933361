"""A client host's files are copied completely or not at all, only to the run's directory; skipped files are counted."""

import base64
import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from cli.parameters.parameter_types import parse_ssh_address
from cli.record.clients.remote_command import collect
from cli.record.clients.result_files import _CollectError, _Files
from cli.record.clients.result_files import collect as collect_files
from cli.run_folder import WORK_FOLDER
from collector.redaction.redactor import KNOWN_FORMS, Redactor
from tests.stranger import forbidden

DATA = b"result\n" * 1000


def data_message(data: bytes) -> dict[str, str]:
    return {"data": base64.b64encode(data).decode()}


def work_in(spool: Path) -> Path:
    """Return a new working directory for a command."""
    folder = spool / WORK_FOLDER
    folder.mkdir(parents=True)
    return folder


def sent(work: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Return what is sent for the files in a working directory."""
    capsys.readouterr()
    collect(work.parent)
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def received(
    folder: Path, messages: Sequence[Mapping[str, Any]], redactor: Redactor = KNOWN_FORMS
) -> tuple[dict[str, bytes], int | None]:
    """Write the files in the messages to `folder`; return their content, and how many files were skipped."""
    with _Files(folder, redactor) as files:
        for message in messages:
            files.take(message)
    assert list(folder.parent.iterdir()) == [folder]
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}, files.skipped


class SilentSession:
    """A session with a host that does not answer."""

    has_ended = False

    def __init__(self, *_: object) -> None:
        self.waits = 0

    def send(self, data: bytes) -> None:
        pass

    def messages(self, _wake: int, timeout_s: float) -> list[dict[str, Any]]:
        self.waits += 1
        assert timeout_s * self.waits < 1.5
        return []

    def close(self) -> str:
        return ""


def test_an_interruption_ends_the_collection_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.record.clients.result_files.SshSession", SilentSession)
    stopped = threading.Event()
    stopped.set()
    assert collect_files(parse_ssh_address("ssh://host"), "/tmp/x", tmp_path, stopped, Redactor()) == "interrupted"  # noqa: S108


def test_a_file_has_its_name_once_it_is_complete(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    with _Files(folder, Redactor()) as files:
        files.take({"file": "a/b.json"})
        files.take(data_message(DATA[:100]))
        files.take(data_message(DATA[100:]))
        assert not (folder / "a/b.json").exists()
        files.take({"sha256": hashlib.sha256(DATA).hexdigest()})
        assert (folder / "a/b.json").read_bytes() == DATA
        assert files.skipped is None
        files.take({"collected": 1, "skipped": 2})
        assert files.skipped == 2


@pytest.mark.parametrize("name", ["../b", "/etc/b", "", ".", "a/../../b", "a\0b", "ä" * 501, None, 3])
def test_a_name_outside_the_directory_is_refused(tmp_path: Path, name: object) -> None:
    with _Files(tmp_path / "files", Redactor()) as files, pytest.raises(ValueError, match="is not a valid path inside"):
        files.take({"file": name})
    assert list(tmp_path.iterdir()) == []


def test_files_whose_names_differ_only_in_secrets_are_all_kept(tmp_path: Path) -> None:
    messages = []
    for name, data in (("a/secretAAA.csv", b"1"), ("a/secretBBB.csv", b"2"), ("a/secretCCC.csv", b"3")):
        messages += [{"file": name}, data_message(data), {"sha256": hashlib.sha256(data).hexdigest()}]
    redactor = Redactor().knowing(["secretAAA", "secretBBB", "secretCCC"])
    for _ in range(2):
        # The second attempt replaces the files of the first one.
        files, _ = received(tmp_path / "files", messages, redactor)
        assert files == {"a/REDACTED.csv": b"1", "a/REDACTED-2.csv": b"2", "a/REDACTED-3.csv": b"3"}


def test_a_file_with_a_wrong_checksum_leaves_nothing(tmp_path: Path) -> None:
    with _Files(tmp_path / "files", Redactor()) as files:
        files.take({"file": "b"})
        files.take(data_message(DATA))
        with pytest.raises(_CollectError, match="b: wrong checksum"):
            files.take({"sha256": hashlib.sha256(b"").hexdigest()})
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_other_messages_are_ignored(tmp_path: Path) -> None:
    with _Files(tmp_path / "files", Redactor()) as files:
        for message in (data_message(DATA), {"sha256": ""}, {"protocol": 1}, {}):
            files.take(message)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("names", [("n" * 255, "z"), (".a.json.part", "a.json"), ("files.part", "z")])
def test_every_name_of_a_file_is_possible(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], names: tuple[str, ...]
) -> None:
    work = work_in(tmp_path / "spool")
    for name in names:
        (work / name).write_text(name)
    files, skipped = received(tmp_path / "run/files", sent(work, capsys))
    assert (files, skipped) == ({name: name.encode() for name in names}, 0)


def test_a_path_that_is_too_long_is_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = work_in(tmp_path / "spool")
    folder = work.joinpath(*["ä" * 99] * 5)
    folder.mkdir(parents=True)
    # The directory's path has 994 bytes.
    for name in ("longer", "short"):
        (folder / name).write_bytes(DATA)
    (work / "z").write_bytes(DATA)
    files, skipped = received(tmp_path / "run/files", sent(work, capsys))
    assert ([Path(name).name for name in sorted(files)], skipped) == (["z", "short"], 1)


def test_directories_without_permissions_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with TemporaryDirectory() as parent:
        Path(parent).chmod(0o755)
        work = work_in(Path(parent))
        for name in ("not-listed", "not-entered"):
            (work / name).mkdir()
            (work / name / "file").write_bytes(DATA)
        (work / "not-entered").chmod(0o444)
        (work / "z").write_bytes(DATA)
        with forbidden(work / "not-listed"):
            messages = sent(work, capsys)
        (work / "not-entered").chmod(0o700)
    assert [message["file"] for message in messages if "file" in message] == ["z"]
    assert messages[-1] == {"collected": 1, "skipped": 2}


def test_a_directory_that_does_not_exist_has_no_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sent(tmp_path / WORK_FOLDER, capsys)[-1] == {"collected": 0, "skipped": 0}

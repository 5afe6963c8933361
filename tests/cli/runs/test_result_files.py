"""Files of a client host are written completely or not at all, and only to the run's directory."""

import base64
import hashlib
from pathlib import Path

import pytest

from cli.runs.clients.result_files import _CollectError, _Files

DATA = b"result\n" * 1000


def data_message(data: bytes) -> dict[str, str]:
    return {"data": base64.b64encode(data).decode()}


def test_a_file_has_its_name_once_it_is_complete(tmp_path: Path) -> None:
    with _Files(tmp_path) as files:
        files.take({"file": "a/b.json"})
        files.take(data_message(DATA[:100]))
        files.take(data_message(DATA[100:]))
        assert not (tmp_path / "a/b.json").exists()
        files.take({"sha256": hashlib.sha256(DATA).hexdigest()})
        assert (tmp_path / "a/b.json").read_bytes() == DATA
        assert files.skipped is None
        files.take({"collected": 1, "skipped": 2})
        assert files.skipped == 2


@pytest.mark.parametrize("name", ["../b", "/etc/b", "", ".", "a/../../b", "a\0b", "a" * 2000, None, 3])
def test_a_name_outside_the_directory_is_refused(tmp_path: Path, name: object) -> None:
    with _Files(tmp_path) as files, pytest.raises(ValueError, match="is not a valid path inside"):
        files.take({"file": name})
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_a_wrong_checksum_leaves_nothing(tmp_path: Path) -> None:
    with _Files(tmp_path) as files:
        files.take({"file": "b"})
        files.take(data_message(DATA))
        with pytest.raises(_CollectError, match="wrong checksum"):
            files.take({"sha256": hashlib.sha256(b"").hexdigest()})
    assert list(tmp_path.iterdir()) == []


def test_other_messages_are_ignored(tmp_path: Path) -> None:
    with _Files(tmp_path) as files:
        for message in (data_message(DATA), {"sha256": ""}, {"protocol": 1}, {}):
            files.take(message)
    assert list(tmp_path.iterdir()) == []

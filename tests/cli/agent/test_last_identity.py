"""The identity beside the journal: what the node reported last, whatever has become of the file."""

import json
import os
from pathlib import Path

import pytest

from cli.agent.last_identity import FILE, LastIdentity
from collector.model.identity import Identity

WHO = Identity("prod", "dc1", "r1", "10.0.0.1")
FIELDS = {"cluster": "prod", "dc": "dc1", "rack": "r1", "node": "10.0.0.1"}


def test_what_the_node_reported_is_known_after_a_restart(tmp_path: Path) -> None:
    first = LastIdentity(tmp_path)
    assert first.identity == Identity()
    first.update(WHO)
    assert LastIdentity(tmp_path).identity == first.identity == WHO
    # It answers differently.
    other = Identity("prod", "dc2", "r7", "10.0.0.2")
    first.update(other)
    assert LastIdentity(tmp_path).identity == other
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_file_is_written_only_when_something_changes(tmp_path: Path) -> None:
    known = LastIdentity(tmp_path)
    known.update(WHO)
    (tmp_path / FILE).unlink()
    known.update(WHO)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\x00",
        b"null",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b"x" * (5 << 20),
        json.dumps({**FIELDS, "rack": 7}).encode(),
        json.dumps({**FIELDS, "rack": ["r1"]}).encode(),
        json.dumps({**FIELDS, "cluster": "\x1b]52;c;aGk=\x07"}).encode(),
        json.dumps({**FIELDS, "dc": "\ud800"}).encode(),
        json.dumps({**FIELDS, "node": "n" * 256}).encode(),
        json.dumps({"cluster": "prod"}).encode(),
    ],
)
def test_a_file_that_makes_no_sense_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    known = LastIdentity(tmp_path)
    assert known.identity == Identity()
    known.update(WHO)
    assert LastIdentity(tmp_path).identity == WHO


def test_something_else_in_its_place_stops_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)
    assert LastIdentity(tmp_path).identity == Identity()
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).mkdir()
    (tmp_path / FILE / "x").touch()
    known = LastIdentity(tmp_path)
    known.update(WHO)
    assert LastIdentity(tmp_path).identity == Identity()
    # The next tick tries again.
    (tmp_path / FILE / "x").unlink()
    (tmp_path / FILE).rmdir()
    known.update(WHO)
    assert LastIdentity(tmp_path).identity == WHO

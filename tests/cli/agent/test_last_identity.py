"""The identity stored beside the journal is the last one that the node reported; damaged files are ignored."""

import json
import os
from pathlib import Path

import pytest

from cli.agent.agent_state import FILE, LastIdentity
from collector.model.snapshot import Identity

IDENTITY = Identity("prod", "dc1", "r1", "10.0.0.1")
FIELDS = {"cluster": "prod", "dc": "dc1", "rack": "r1", "node": "10.0.0.1"}


def test_the_reported_identity_survives_a_restart(tmp_path: Path) -> None:
    first = LastIdentity(tmp_path)
    assert first.identity == Identity()
    first.update(IDENTITY)
    assert LastIdentity(tmp_path).identity == first.identity == IDENTITY
    changed = Identity("prod", "dc2", "r7", "10.0.0.2")
    first.update(changed)
    assert LastIdentity(tmp_path).identity == changed
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_the_file_is_written_only_when_the_identity_changes(tmp_path: Path) -> None:
    stored = LastIdentity(tmp_path)
    stored.update(IDENTITY)
    (tmp_path / FILE).unlink()
    stored.update(IDENTITY)
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
def test_a_malformed_file_counts_as_missing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    stored = LastIdentity(tmp_path)
    assert stored.identity == Identity()
    stored.update(IDENTITY)
    assert LastIdentity(tmp_path).identity == IDENTITY


def test_an_unusable_file_does_not_stop_the_agent(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)
    assert LastIdentity(tmp_path).identity == Identity()
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).mkdir()
    (tmp_path / FILE / "x").touch()
    stored = LastIdentity(tmp_path)
    stored.update(IDENTITY)
    assert LastIdentity(tmp_path).identity == Identity()
    # Once the path is usable, the next update writes the file.
    (tmp_path / FILE / "x").unlink()
    (tmp_path / FILE).rmdir()
    stored.update(IDENTITY)
    assert LastIdentity(tmp_path).identity == IDENTITY

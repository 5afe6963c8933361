"""Recordings whose lock file the user has no permission to open."""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from cli.main import main
from collector.recording.header import Header
from collector.recording.journal_files import LockState, lock_state
from collector.recording.writer import LOCK, Journal, Limits
from tests.collector.merge.recorded_nodes import METRICS, busy
from tests.stranger import forbidden


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield the directory of an open recording; every user may read all its files except the lock file."""
    # tmp_path is unsuitable: it is in a directory that other users may not enter.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        header = partial(Header, "1", 1.0, "s", sources=("cassandra",), metrics=METRICS)
        with closing(Journal(folder, header, Limits(sync="never"), pytest.fail)) as journal:
            for snapshot in busy("a", 5):
                journal.append(snapshot)
            yield folder


@pytest.fixture
def as_stranger(folder: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Run the test as a user without permission to open the lock file."""
    # Import all modules that the commands need before switching to a user who might not be allowed to read them.
    assert main(["journal", "check", str(folder)]) == main(["replay", str(folder)]) == 0
    assert "open" in capsys.readouterr().out
    with forbidden(folder / LOCK):
        yield


@pytest.mark.usefixtures("as_stranger")
def test_the_state_of_a_forbidden_lock_is_unknown(folder: Path) -> None:
    assert lock_state(folder) is LockState.UNKNOWN


@pytest.mark.usefixtures("as_stranger")
def test_check_and_replay_report_that_the_state_is_unknown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    owner = (folder / LOCK).owner()
    users = "root" if owner == "root" else f"{owner} or root"
    text = (
        "no footer: cannot tell whether a recorder is still writing: "
        f"no permission to open {folder / LOCK} (hint: run this command as {users})"
    )
    with pytest.raises(SystemExit, match="1"):
        main(["journal", "check", str(folder)])
    *lines, last = capsys.readouterr().out.splitlines()
    assert lines == [f"{folder}: {text}"]
    assert last.endswith(": open or no footer")
    assert main(["replay", str(folder)]) == 0
    assert text in capsys.readouterr().err
    assert main(["journal", "info", str(folder)]) == 0
    assert "open or no footer" in capsys.readouterr().out


def test_a_held_lock_and_a_free_one_are_recognised(folder: Path, tmp_path: Path) -> None:
    assert lock_state(folder) is LockState.HELD
    assert lock_state(tmp_path) is LockState.FREE

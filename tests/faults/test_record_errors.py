"""Errors of `casstat record` before the command starts have their own exit statuses and leave no run."""

from pathlib import Path

import pytest

from cli.record import record_program
from tests.faults.recorders import recorded
from tests.faults.recording_agent import HOST, Node


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory; it contains a file and a directory with a file."""
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("no-such-command-here", 127, "casstat: no-such-command-here: command not found\n"),
        ("./file", 126, "casstat: ./file: not executable\n"),
        ("./absent", 127, "casstat: ./absent: command not found\n"),
    ],
)
def test_a_command_that_cannot_run_has_the_status_of_a_shell(
    command: str, code: int, message: str, directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert recorded(capfd, f"{HOST}:1", "-o", "run", "--", command) == (code, "", message)
    assert not (directory / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no command given"),
        (["10.0.0.1"], "no command given"),
        (["--no-such-option", "--", "true"], "No such option"),
        (["--tag", "x", "--", "true"], "expected KEY=VALUE"),
        (["--name", "x" * 101, "--", "true"], "name must be a single line of 1 to 100 printable characters"),
        (["--name", " ", "--", "true"], "must not be blank"),
        (["--name", "a\tb", "--", "true"], "name must be a single line"),
        (["--fail-if", "read_p99_ms", "--", "true"], "expected COLUMN OPERATOR NUMBER"),
        (["--mark-regex", "(", "--", "true"], "'(' is not a regular expression: missing ), unterminated subpattern"),
        (["--mark-regex", "a{99999999999}", "--", "true"], "the repetition number is too large"),
        (["--mark-regex", "(" * 5000 + ")" * 5000, "--", "true"], "is not a regular expression"),
        (["--mark-regex", "\udcff(", "--", "true"], "is not a regular expression: missing )"),
        # A byte that is not valid UTF-8 is a valid pattern, and so is a large number of repetitions.
        (["--mark-regex", "\udcff", f"{HOST}:1", "-o", "run", "--", "true"], "no node can be recorded"),
        (["--mark-regex", "a{9999999}", f"{HOST}:1", "-o", "run", "--", "true"], "no node can be recorded"),
        (["::bad::", "-o", "run", "--", "true"], "is not a valid node address"),
        ([f"{HOST}:1", "-o", "run", "--", "true"], "no node can be recorded"),
        ([f"http://{HOST}:1/jolokia", "-o", "run", "--", "true"], "Cassandra does not answer"),
        ([f"{HOST}:1", "-o", "full", "--", "true"], "already exists"),
        (["--seed", f"{HOST}:1", "-o", "run", "--", "true"], "no seed answered"),
        (["--seed", "ssh://h", "-o", "run", "--", "true"], "ssh://h: --seed takes the address of an agent"),
        (["--seed", f"{HOST}:8778", "-o", "run", "--", "true"], "--seed takes the address of an agent"),
    ],
)
def test_an_error_in_casstat_has_its_own_status(
    arguments: list[str], message: str, directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, out, errors = recorded(capfd, *arguments)
    assert (code, out) == (125, "")
    assert message in errors
    assert not (directory / "run").exists()


def test_a_run_is_not_begun_on_a_disk_that_is_almost_full(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    monkeypatch.setattr(record_program, "MIN_FREE_BYTES", 1 << 60)
    code, _, errors = recorded(capfd, node.address, "-o", folder, "--", "true")
    assert code == 125
    assert f"{folder}: only " in errors
    assert " MiB free (hint: free at least " in errors
    assert not folder.exists()
    assert node.agent.known == {}

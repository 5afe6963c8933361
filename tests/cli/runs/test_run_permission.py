"""Runs whose directories the user has no permission to read."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.main import main
from collector.runs.run import Run
from collector.runs.run_file import FILE, is_run, write_run
from tests.stranger import forbidden


@pytest.fixture
def runs() -> Iterator[Path]:
    """Yield a directory with two runs that other users may read."""
    # tmp_path is unsuitable: it is in a directory that other users may not enter.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, run in enumerate(("mine", "yours")):
            (folder / run).mkdir()
            write_run(folder / run, Run(run, 1000.0 + number, 1060.0, "0.1.0"))
        folder.chmod(0o755)
        yield folder


def test_a_directory_that_cannot_be_read_is_not_considered_a_run(runs: Path) -> None:
    with forbidden(runs / "mine"):
        assert not is_run(runs / "mine")
    assert is_run(runs / "mine")


def test_the_runs_that_can_be_read_are_listed(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(runs)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    with forbidden(runs / "mine"):
        assert main(["runs", str(runs)]) == 0
    output = capsys.readouterr()
    assert (len(output.out.splitlines()), output.err) == (2, "")
    with forbidden(runs / "mine" / FILE):
        assert main(["runs", str(runs)]) == 0
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == 2
    assert output.err == f"casstat: {runs / 'mine' / FILE}: Permission denied\n"


@pytest.mark.parametrize(
    ("path", "arguments", "code", "message"),
    [
        ("mine", ("runs", "show", "mine"), 1, "mine/run.json: Permission denied"),
        ("mine", ("mark", "a", "--run", "mine"), 1, "mine: not a run directory"),
        ("mine", ("fetch", "--recover", "mine"), 1, "mine: not a run directory"),
        (f"mine/{FILE}", ("fetch", "--recover", "mine"), 1, "mine/run.json: Permission denied"),
        ("mine", ("record", "127.0.0.1:1", "-o", "mine", "--", "true"), 125, "mine: Permission denied"),
        ("mine", ("record", "127.0.0.1:1", "-o", "mine/run", "--", "true"), 125, "mine/run: Permission denied"),
    ],
)
def test_a_missing_permission_is_a_one_line_error(
    path: str,
    arguments: tuple[str, ...],
    code: int,
    message: str,
    runs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(runs)
    # Import all modules before the user changes.
    assert main(arguments) in (0, 1, 125)
    capsys.readouterr()
    with forbidden(runs / path):
        assert main(arguments) == code
    assert capsys.readouterr().err == f"casstat: {message}\n"

"""The modules that casstat imports: its own, whatever is in the working directory and on PYTHONPATH."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from cli.agent.sink_threads import run_upload
from cli.process_setup import PROGRAM, casstat_command
from cli.record.private_agent import PrivateAgent
from tests.faults.fake_jolokia import FakeJolokia
from tests.faults.program import PATIENCE_S, environment

FOREIGN = "raise SystemExit('foreign code ran')\n"
# What pip writes to bin/casstat for the entry point in setup.cfg.
SCRIPT = "import sys\nfrom casstat import main\nsys.exit(main())\n"


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A folder with other programs' packages whose names are those of casstat's, or of its dependencies."""
    for name in ("cli", "collector", "exporters", "dashboards"):
        (tmp_path / "foreign" / name).mkdir(parents=True)
        (tmp_path / "foreign" / name / "__init__.py").write_text(FOREIGN)
    return tmp_path / "foreign"


def output_of(command: Sequence[str | Path], folder: Path, environ: Mapping[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment(**environ), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("path", ["", "{folder}", ":{folder}", ".", "{folder}:"])
@pytest.mark.parametrize("start", ["file", "script"])
def test_casstat_starts_beside_foreign_packages(start: str, path: str, foreign: Path, tmp_path: Path) -> None:
    (tmp_path / "casstat").write_text(SCRIPT)
    python_path = path.format(folder=foreign)
    command = casstat_command() if start == "file" else [sys.executable, tmp_path / "casstat"]
    assert re.match(r"casstat \d", output_of([*command, "--version"], foreign, {"PYTHONPATH": python_path}))


def test_nothing_is_imported_from_the_working_directory(foreign: Path, tmp_path: Path) -> None:
    # Python itself imports some modules before casstat begins, and more of them if casstat's installation is editable.
    before = subprocess.check_output([sys.executable, "-c", "import sys; print(*sys.modules)"], text=True).split()
    for name in {"click", "psutil", "orjson", "contextlib", "collections", "typing", "signal", "json"} - {*before}:
        (foreign / f"{name}.py").write_text(FOREIGN)
    (tmp_path / "casstat").write_text(SCRIPT)
    for command in (casstat_command(), [sys.executable, tmp_path / "casstat"]):
        assert "casstat" in output_of([*command, "--version"], foreign, {"PYTHONPATH": ":"})


# `click` is imported before the command's name is known, `psutil` by the command.
@pytest.mark.parametrize("name", ["click", "psutil"])
def test_ctrl_c_while_modules_are_imported_prints_nothing(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n")
    done = subprocess.run(
        [*casstat_command(), "top", "--help"],
        env=environment(PYTHONPATH=str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_python_s_own_folders_may_be_the_working_directory() -> None:
    for folder in (Path(os.__file__).parent, PROGRAM.parent):
        assert "casstat" in output_of([*casstat_command(), "--version"], folder, {"PYTHONPATH": "."})


def test_child_processes_are_isolated(foreign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(foreign)
    monkeypatch.setenv("PYTHONPATH", str(foreign))
    node = FakeJolokia()
    with PrivateAgent(tmp_path / "agent", ["--jolokia", node.url]) as agent:
        assert agent.address().port
    assert "foreign" not in run_upload([str(tmp_path / "nosuch"), f"file://{tmp_path}/store"], PATIENCE_S).problem


def test_every_child_process_has_the_launcher() -> None:
    # `python -m` prefers the packages in the working directory.
    for folder in ("cli", "collector", "exporters", "dashboards"):
        for path in (PROGRAM.parent / folder).rglob("*.py"):
            assert '"-m", "cli' not in path.read_text(), path

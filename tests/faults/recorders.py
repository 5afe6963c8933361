"""Runs `casstat record`, and examines what it leaves behind."""

import json
import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from cli.main import main
from cli.record.command import output_observers
from tests.faults.fake_jolokia import FakeJolokia
from tests.waiting import eventually

COMPLETE_RUN = {
    "run.json",
    "summary.json",
    "command.log",
    "nodes",
    "client-hosts",
    "merged",
    "plots",
    "report.html",
    "report.md",
}
"""The files and directories of a complete run."""


def recorded(capfd: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Run `casstat record`; return its exit status, stdout and stderr."""
    code = main(["record", *map(str, arguments)])
    printed = capfd.readouterr()
    assert "Traceback" not in printed.err
    return code, printed.out, printed.err


def until_ticks(number: int, fake: FakeJolokia, folder: Path) -> str:
    """Return a shell command that ends when the node has been read in `number` ticks since the command began."""
    begun, enough = folder / "begun", folder / "enough"

    def wait() -> None:
        eventually(begun.exists, 120)
        ticks = fake.ticks
        eventually(lambda: fake.ticks >= ticks + number, 120)
        enough.touch()

    threading.Thread(target=wait, daemon=True).start()
    return f"touch {begun}; until [ -e {enough} ]; do sleep 0.02; done"


def recover(folder: Path) -> None:
    """Complete an incomplete run with `casstat fetch --recover`."""
    assert main(["fetch", "--recover", str(folder)]) == 0


def recovery_hint(folder: Path) -> str:
    return f"(hint: run 'casstat fetch --recover {folder}')"


def summaries(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the summaries of a run's phases by name."""
    return {phase["name"]: phase for phase in json.loads((folder / "summary.json").read_text())}


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def processes_of(word: str) -> list[psutil.Process]:
    """Return the processes whose command lines contain a word."""
    processes = psutil.process_iter(["cmdline"])
    return [process for process in processes if any(word in argument for argument in process.info["cmdline"] or [])]


def show_status_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `casstat record` show its status line, as on a terminal."""
    monkeypatch.setattr(output_observers, "os", SimpleNamespace(isatty=lambda _: True, write=os.write))

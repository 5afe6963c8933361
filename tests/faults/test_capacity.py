"""`casstat capacity` loses at most the running step, whatever ends it, and continues where it stopped."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from tests.faults.limited_generator import HIGHEST_RATE
from tests.faults.program import environment
from tests.faults.recording_agent import Node
from tests.faults.swept_node import swept_node
from tests.waiting import eventually

STEPS_S = 120.0


def arguments(node: Node, folder: Path, *options: str) -> list[str]:
    result = f"{folder}-{{rate}}.csv"
    words = [sys.executable, "-m", "tests.faults.limited_generator", "{rate}", "{duration}", result]
    fixed = [
        "--rate",
        "11..13",
        "--objective",
        "client_p99_ms < 10",
        "--step",
        "1s",
        "--confirm",
        "2s",
        "--warm-up",
        "0",
    ]
    return [
        "capacity",
        node.address,
        "-o",
        str(folder),
        *fixed,
        "--client",
        result,
        "-q",
        "--no-report",
        *options,
        "--",
        *words,
    ]


def search(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return content


def steps(folder: Path) -> list[dict[str, Any]]:
    try:
        content: dict[str, Any] = json.loads((folder / "capacity.json").read_text())
    except OSError:
        return []
    completed: list[dict[str, Any]] = content["steps"]
    return completed


@pytest.mark.timeout(900)
def test_a_search_that_is_killed_and_resumed_finds_the_capacity(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "search"
    with swept_node(tmp_path / "journal") as node:
        words = [sys.executable, "-m", "cli", *arguments(node, folder)]
        with subprocess.Popen(words, env=environment(), stdout=subprocess.DEVNULL) as process:
            eventually(lambda: len(steps(folder)) == 2, STEPS_S)
            process.kill()
        before = steps(folder)
        assert main(arguments(node, folder, "--resume")) == 0
    printed = capfd.readouterr()
    assert steps(folder)[:2] == before
    content = search(folder)
    assert HIGHEST_RATE / 1.04 <= content["capacity"] <= HIGHEST_RATE < content["failing_rate"]
    assert f"Capacity: {content['capacity']:g} operations per second" in printed.out
    assert "Traceback" not in printed.err
    assert content["queueing_included"] is True
    for step in (content["steps"][0], content["steps"][-1]):
        assert main(["report", str(folder / step["run"])]) == 0


def test_an_absent_node_ends_the_search_with_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with swept_node(tmp_path / "journal") as node:
        words = arguments(node, tmp_path / "search")
    assert main(words) == 1
    errors = capfd.readouterr().err
    assert "Traceback" not in errors
    assert "Connection refused" in errors

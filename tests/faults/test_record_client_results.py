"""`casstat record` imports what the load generator prints and writes."""

import os
import sys
from pathlib import Path

import pytest

from cli.recordings.recording_arguments import results_in
from tests.faults.recorders import recorded
from tests.faults.recording_agent import Node

LATTE = Path(__file__).parents[1] / "captures" / "clients" / "latte-read-3node.json"
# Writes latte's report, as if it had been measured now, to standard output or to a file.
WRITING = """
import datetime, json, sys
content = json.load(open(sys.argv[1]))
content["result"]["start_time"] = datetime.datetime.now(datetime.timezone.utc).isoformat()
json.dump(content, open(sys.argv[2], "w") if len(sys.argv) > 2 else sys.stdout)
"""


def load(*target: Path) -> list[str | Path]:
    return [sys.executable, "-c", WRITING, LATTE, *target]


@pytest.mark.usefixtures("without_summary")
def test_a_result_that_the_command_prints_is_recognised(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    code, _, errors = recorded(capfd, node.address, "-o", folder, "--", *load())
    assert code == 0, errors
    (result,) = results_in(folder)
    assert (result.format, result.source) == ("latte", "command.log")


@pytest.mark.usefixtures("without_summary")
def test_a_result_that_the_command_writes_is_imported_and_one_from_before_is_refused(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, written, old, missing = (tmp_path / name for name in ("run", "written.json", "old.json", "missing.json"))
    old.write_bytes(LATTE.read_bytes())
    os.utime(old, (1.0, 1.0))
    options = [word for path in (written, old, missing) for word in ("--client", path)]
    code, _, errors = recorded(capfd, node.address, *options, "-o", folder, "--", *load(written))
    assert code == 0, errors
    assert [result.source for result in results_in(folder)] == ["written.json"]
    assert f"--client {old}: last changed before the command began" in errors
    assert f"--client {missing}: no such file" in errors

"""promtool's word on the rules: they are sound, and every alert fires, stays quiet, survives a reset and resolves."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from dashboards.rules.files import rule_files
from dashboards.rules.table import ALERTS
from tests.dashboards.rule_checks import checks_of

pytestmark = pytest.mark.beside


def promtool(*arguments: str | Path) -> None:
    program = shutil.which("promtool")
    assert program, "no promtool: tools/prepare test installs it"
    command: Sequence[str | Path] = [program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rules")
    for name, text in rule_files():
        (folder / name).write_text(text)
    return folder


def test_the_rules_are_sound(folder: Path) -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", *sorted(folder.glob("*.yml")))


@pytest.mark.parametrize("subject", ALERTS)
def test_every_alert_does_what_it_should(folder: Path, subject: str) -> None:
    tests = {
        "rule_files": [f"casstat-{subject}.yml", "casstat-recording.yml"],
        "evaluation_interval": "1m",
        # Rules of one group may need what the other has recorded.
        "group_eval_order": ["casstat-recording", f"casstat-{subject}"],
        "tests": list(checks_of(ALERTS[subject])),
    }
    path = folder / f"{subject}.test.json"
    # JSON is YAML.
    path.write_text(json.dumps(tests))
    promtool("test", "rules", path)

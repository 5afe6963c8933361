"""promtool accepts the rules; every alert fires when it should and only then, ignores counter resets, and resolves."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from dashboards.rules.alert import burn_rate_rules
from dashboards.rules.rule_files import ALERTS, rule_files
from tests.dashboards.rule_checks import checks_of

RECORDING = "casstat-recording"
pytestmark = pytest.mark.beside


def promtool(*arguments: str | Path) -> None:
    program = shutil.which("promtool")
    assert program, "no promtool: tools/prepare test installs it"
    command: Sequence[str | Path] = [program, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rules")
    for name, text in rule_files():
        (folder / name).write_text(text)
    return folder


def test_promtool_reports_no_problem_in_the_rules(folder: Path) -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", *sorted(folder.glob("*.yml")))


@pytest.mark.parametrize("subject", ALERTS)
def test_every_alert_passes_its_rule_tests(folder: Path, subject: str) -> None:
    """Each alert has its own rule file to save time: promtool evaluates all rules of a file each simulated minute."""
    (group,) = yaml.safe_load((folder / f"casstat-{subject}.yml").read_text())["groups"]
    paths = []
    for test in checks_of(ALERTS[subject]):
        name = test["name"]
        rules = [rule for rule in group["rules"] if rule["alert"] == name]
        recording = (
            [RECORDING] if any(record.name in rule["expr"] for rule in rules for record in burn_rate_rules()) else []
        )
        # JSON is valid YAML.
        (folder / f"{name}.rules.json").write_text(json.dumps({"groups": [{"name": name, "rules": rules}]}))
        tests = {
            "rule_files": [f"{name}.rules.json", *(f"{group_name}.yml" for group_name in recording)],
            "evaluation_interval": "1m",
            # The recording group must be evaluated first, because the alert may use its series.
            "group_eval_order": [*recording, name],
            "tests": [test],
        }
        path = folder / f"{name}.test.json"
        path.write_text(json.dumps(tests))
        paths.append(path)
    promtool("test", "rules", *paths)

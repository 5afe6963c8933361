"""The rule files as Prometheus reads them."""

from collections.abc import Iterator
from typing import Any

import yaml

from dashboards.rules.alert import Alert
from dashboards.rules.burn import recorded
from dashboards.rules.table import ALERTS

RUNBOOKS = "https://github.com/casstat/casstat/blob/main/docs/runbooks"
"""Where the runbooks of docs/runbooks are read."""
HEAD = "# Made by python -m dashboards.rules from dashboards/thresholds.py. For Prometheus 2.30 and later.\n"


def rule_files() -> Iterator[tuple[str, str]]:
    """Yield the relative name of each file and its text."""
    records = [
        {"record": each.name, "expr": each.query, **({"labels": dict(each.labels)} if each.labels else {})}
        for each in recorded()
    ]
    yield "casstat-recording.yml", _file("casstat-recording", records)
    for subject, alerts in ALERTS.items():
        yield f"casstat-{subject}.yml", _file(f"casstat-{subject}", [_rule(alert) for alert in alerts])


def _rule(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expr,
        **({"for": f"{round(alert.for_s)}s"} if alert.for_s else {}),
        "labels": {"severity": alert.severity},
        "annotations": {
            "summary": alert.summary,
            "description": alert.description,
            "runbook_url": f"{RUNBOOKS}/{alert.name}.md",
        },
    }


def _file(group: str, rules: list[dict[str, Any]]) -> str:
    document = {"groups": [{"name": group, "rules": rules}]}
    return HEAD + yaml.safe_dump(document, sort_keys=False, width=10_000, allow_unicode=True)

"""The rule files as Prometheus reads them."""

from collections.abc import Iterator
from typing import Any

import yaml

from dashboards.rules import burn_rate, cluster_rules
from dashboards.rules.alert import JOB, MATCH, Alert, job_matcher
from dashboards.rules.all_alerts import ALERTS

RUNBOOKS = "docs/runbooks"
"""The folder of the runbooks in this project."""
HEAD = "# Made by python -m dashboards.rules from dashboards/thresholds.py. For Prometheus 2.30 and later.\n"


def rule_files(runbooks: str = "", job: str = JOB) -> Iterator[tuple[str, str]]:
    """Yield the relative name and the text of each file.

    runbooks  the URL of the folder that holds the runbooks. Without it alerts have no `runbook_url`, only the
              path of the runbook in this project.
    job       the name of the job that scrapes the agents.
    """
    records = [
        {"record": each.name, "expr": each.query, **({"labels": dict(each.labels)} if each.labels else {})}
        for each in (*burn_rate.recording_rules(), *cluster_rules.recording_rules())
    ]
    yield "casstat-recording.yml", _file("casstat-recording", records, job)
    for subject, alerts in ALERTS.items():
        yield f"casstat-{subject}.yml", _file(f"casstat-{subject}", [_rule(alert, runbooks) for alert in alerts], job)


def _rule(alert: Alert, runbooks: str) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expr,
        **({"for": f"{round(alert.for_s)}s"} if alert.for_s else {}),
        "labels": {"severity": alert.severity},
        "annotations": {
            "summary": alert.summary,
            "description": alert.description,
            **_runbook(f"{alert.name}.md", runbooks),
        },
    }


def _runbook(name: str, runbooks: str) -> dict[str, str]:
    return {"runbook_url": f"{runbooks}/{name}"} if runbooks else {"runbook": f"{RUNBOOKS}/{name}"}


def _file(group: str, rules: list[dict[str, Any]], job: str) -> str:
    matcher = job_matcher(job)
    rules = [{**rule, "expr": rule["expr"].replace(MATCH, matcher)} for rule in rules]
    document = {"groups": [{"name": group, "rules": rules}]}
    return HEAD + yaml.safe_dump(document, sort_keys=False, width=10_000, allow_unicode=True)

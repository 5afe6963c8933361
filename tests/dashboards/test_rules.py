"""The rules: their metrics, thresholds, labels and runbooks, and the page docs/rules.md."""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.top.screen_rows import level
from dashboards.expression import metrics_of
from dashboards.grafana import panel_model
from dashboards.grafana.build import line_steps
from dashboards.grafana.panel_model import Line
from dashboards.rules.__main__ import COMMITTED
from dashboards.rules.alert import (
    CRITICAL,
    JOB,
    SEVERITIES,
    WARNING,
    WINDOWS,
    Alert,
    burn_rate_rules,
    format_number,
    nearest_le,
    signal_alerts,
)
from dashboards.rules.rule_files import ALERTS, rule_files
from dashboards.signals.all_signals import SIGNALS
from dashboards.signals.signal import Unit
from dashboards.thresholds import OBJECTIVES, THRESHOLDS, Severity, Threshold
from tests.dashboards.absence_checks import ABSENCE
from tests.dashboards.alert_cases import CASES
from tests.dashboards.rule_checks import ALL_ALERTS, checks_of, min_ratio
from tests.every import every
from tests.exporters import golden
from tests.exporters.metrics_page.complete_page import complete_page
from tests.exporters.metrics_page.parsed import parsed

ROOT = Path(__file__).parent.parent.parent
DASHBOARDS = ROOT / "dashboards" / "grafana" / "json" / "prometheus"
RUNBOOKS = ROOT / "docs" / "runbooks"
PAGE = ROOT / "docs" / "rules.md"
HEADINGS = ["Meaning", "Impact", "Diagnosis", "Mitigation", "Harmless when"]
NAMES = list(dict.fromkeys(alert.name for alert in ALL_ALERTS))
# A metric in a query, with its matchers.
SELECTED = re.compile(r"([a-zA-Z_:][\w:]*)\{([^}]*)\}")
RATE = re.compile(r"(?:rate|increase|deriv)\([^[]*\[(\d+)([mh])\]")
# Alerts that fire on a single event, because lost data cannot be restored. They are only warnings.
EVENT_ALERTS = ("CasstatSinkLosing", "CasstatJournalLosing")
MATCHED = re.compile(r"(\w+)(?:=~|!~|!=|=)\"")


def alert_id(alert: Alert) -> str:
    return f"{alert.name}-{alert.severity}"


each_alert = every("alert", ALL_ALERTS)
each_name = every("name", NAMES)


@pytest.fixture(scope="module")
def series_labels() -> Mapping[str, set[str]]:
    """Return the labels of all series that an alert may select, by metric name."""
    labels_of: dict[str, set[str]] = {"up": {"job", "instance"}}
    for name, labels in parsed(complete_page(openmetrics=False)).values:
        labels_of.setdefault(name, {"job"}).update(dict(labels))
    for record in burn_rate_rules():
        labels_of.setdefault(record.name, set()).update(("cluster", "dc", "operation", "le"))
    # The page lacks this metric, which is served only once a series has been left out.
    labels_of["casstat_series_refused"] = labels_of["casstat_series"] | {"metric"}
    return labels_of


def test_no_two_alerts_have_the_same_name_and_severity() -> None:
    assert len(NAMES) >= 25
    assert len(ALL_ALERTS) == len({(alert.name, alert.severity) for alert in ALL_ALERTS})


@each_alert
def test_an_alert_selects_only_series_that_agents_serve(alert: Alert, series_labels: Mapping[str, set[str]]) -> None:
    selected = SELECTED.findall(alert.expr)
    assert selected
    for metric, matchers in selected:
        assert metric in series_labels
        assert set(MATCHED.findall(matchers)) <= series_labels[metric], metric
        assert f'job="{JOB}"' in matchers or ":" in metric


NODE = "by (cluster, dc, rack, node)"
TIMEOUTS = f'sum {NODE} (rate(cassandra_client_request_timeouts_total{{job="casstat"}}[5m]))'
REQUESTS = f'sum {NODE} (rate(cassandra_client_requests_total{{job="casstat"}}[5m]))'
SLOW_READS = "cluster_dc_operation:cassandra_client_request_slow:ratio_rate"


@every(
    ("name", "severity", "duration", "expr"),
    [
        (
            "CassandraTimeouts",
            "critical",
            "600s",
            f"{TIMEOUTS} > 1 and on (cluster, dc, rack, node) {TIMEOUTS} / {REQUESTS} > 0.01",
        ),
        (
            "CassandraDiskNearlyFull",
            "warning",
            "600s",
            'sum by (cluster, dc, rack, node, mountpoint) (node_filesystem_avail_bytes{job="casstat"}) / '
            'sum by (cluster, dc, rack, node, mountpoint) (node_filesystem_size_bytes{job="casstat"}) < 0.2',
        ),
        (
            "CassandraReadsSlow",
            "critical",
            None,
            f'{SLOW_READS}1h{{operation="Read"}} > (14.4 * 0.01) and '
            f'{SLOW_READS}5m{{operation="Read"}} > (14.4 * 0.01)',
        ),
        (
            "CassandraCommitlogPending",
            "warning",
            "120s",
            f'sum {NODE} (cassandra_commitlog_pending{{job="casstat"}}) > 15',
        ),
        ("CasstatAgentDown", "warning", "300s", 'up{job="casstat"} < 1'),
    ],
)
def test_a_rule_compares_the_documented_threshold(name: str, severity: str, duration: str | None, expr: str) -> None:
    (rule,) = [rule for rule in rules_of() if rule.get("alert") == name and rule["labels"]["severity"] == severity]
    assert rule["expr"] == expr
    assert rule.get("for") == duration


@pytest.mark.parametrize(
    ("signal", "threshold", "signs"),
    [
        ("heap_share", Threshold(0.4, 0.6, 120), (" > 0.4", " > 0.6")),
        ("compactions_pending", Threshold(4, 8, 60), (" > 4", " > 8")),
        ("disk_free_share", Threshold(0.6, 0.4, 60, below=True), (" < 0.6", " < 0.4")),
    ],
)
def test_alerts_and_threshold_lines_change_with_the_threshold(
    signal: str, threshold: Threshold, signs: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(THRESHOLDS, signal, threshold)
    warning, critical = signal_alerts("CassandraTest", signal, "")
    assert (warning.severity, critical.severity) == (WARNING, CRITICAL)
    assert warning.expr.endswith(signs[0])
    assert critical.expr.endswith(signs[1])
    assert warning.for_s == critical.for_s == threshold.for_s
    drawn = {colour: value for value, colour in line_steps(Line(signal)) if value is not None}
    # A step starts at its value, so for a gauge that counts items, "more than 4" becomes a step at 5.
    step = 1 if SIGNALS[signal].unit is Unit.COUNT else 0
    expected = {panel_model.WARNING: threshold.warning, panel_model.CRITICAL: threshold.critical}
    assert drawn == {colour: bound + step for colour, bound in expected.items() if bound is not None}


@pytest.mark.parametrize(
    ("column", "signal", "scale"), [("heap_pct", "heap_share", 100), ("read_p99_ms", "read_p99", 1000)]
)
def test_the_severity_in_top_changes_with_the_threshold(
    column: str, signal: str, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(THRESHOLDS, signal, Threshold(0.4, 0.6))
    severities = [level(column, value * scale) for value in (0.39, 0.41, 0.61)]
    assert severities == [Severity.OK, Severity.WARNING, Severity.CRITICAL]


@every("alert", [alert for alert in ALL_ALERTS if alert.threshold in SIGNALS])
def test_an_alert_on_a_signal_compares_all_of_its_metrics(alert: Alert) -> None:
    metrics = set(metrics_of(SIGNALS[alert.threshold].expression))
    assert metrics
    assert all(metric in alert.expr for metric in metrics)


def compares_a_rate(alert: Alert) -> bool:
    return RATE.search(alert.expr.partition(f" {format_number(alert.bound)}")[0]) is not None


@every(
    "alert",
    [alert for alert in ALL_ALERTS if compares_a_rate(alert) and alert.name not in EVENT_ALERTS],
)
def test_an_alert_on_a_rate_waits_longer_than_its_window(alert: Alert) -> None:
    """A single event raises a rate for the whole window, so an alert with a shorter `for` duration would fire."""
    windows = RATE.findall(alert.expr)
    assert alert.for_s > 60 * min(int(size) * (60 if unit == "h" else 1) for size, unit in windows)


@every("name", EVENT_ALERTS)
def test_a_single_event_does_not_page(name: str) -> None:
    assert {alert.severity for alert in ALL_ALERTS if alert.name == name} == {WARNING}


@every(
    "alert",
    [alert for alert in ALL_ALERTS if THRESHOLDS[alert.threshold].below and alert.threshold in SIGNALS],
)
def test_the_summary_of_an_alert_on_low_values_does_not_repeat_the_title(alert: Alert) -> None:
    """If low values are bad, the title describes the good state, and a summary that repeated it would mislead."""
    assert SIGNALS[alert.threshold].title not in alert.summary


@each_name
def test_a_critical_alert_inhibits_only_the_warning_that_has_the_same_labels(name: str) -> None:
    """Alertmanager compares only the labels under `equal`, so each label that identifies an alert must be listed."""
    (labels,) = {alert.by for alert in ALL_ALERTS if alert.name == name}
    (block,) = re.findall(r"```yaml\n# alertmanager.yml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (rule,) = yaml.safe_load(block)["inhibit_rules"]
    assert {"alertname", *labels} <= set(rule["equal"])


def test_the_documented_inhibition_lists_no_other_labels() -> None:
    labels = dict.fromkeys(("alertname", *(label for alert in ALL_ALERTS for label in alert.by)))
    assert f"    equal: [{', '.join(labels)}]\n" in PAGE.read_text()


@each_alert
def test_summary_and_description_are_one_line_templates(alert: Alert) -> None:
    assert alert.name.startswith(("Cassandra", "Casstat"))
    for text in (alert.summary, alert.description):
        assert text.count("{{") == text.count("}}")
        assert "$labels." in text
        assert "\n" not in text
    assert alert.summary != alert.description


@every("name", THRESHOLDS)
def test_critical_is_worse_than_warning(name: str) -> None:
    row = THRESHOLDS[name]
    assert name in SIGNALS or any(alert.threshold == name for alert in ALL_ALERTS)
    assert (row.warning, row.critical) != (None, None)
    assert row.for_s >= 0
    if row.warning is not None and row.critical is not None:
        assert row.critical < row.warning if row.below else row.critical > row.warning


@pytest.mark.parametrize("name", OBJECTIVES)
def test_an_objective_is_at_an_upper_bound_of_the_histograms(name: str, series_labels: Mapping[str, set[str]]) -> None:
    bound_s = OBJECTIVES[name].bound_s
    assert float(nearest_le(bound_s)) == pytest.approx(bound_s, rel=0.1)
    assert 0.5 < OBJECTIVES[name].target < 1
    with pytest.raises(ValueError, match="not an upper bound"):
        nearest_le(0.123)


def test_each_severity_has_a_long_and_a_short_window() -> None:
    assert WINDOWS == {WARNING: ("1d", "2h"), CRITICAL: ("1h", "5m")}


def test_the_names_of_recording_rules_follow_the_convention() -> None:
    names = [record.name for record in burn_rate_rules()]
    assert names
    assert [name for name in names if not re.fullmatch(r"[a-z_]+:[a-z_]+:[a-z_]+\d+[mhd]", name)] == []


@each_name
def test_every_alert_has_a_runbook(name: str) -> None:
    text = (RUNBOOKS / f"{name}.md").read_text()
    assert text.startswith(f"# {name}\n")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == HEADINGS
    assert len(text) < 2500
    words = " ".join(text.split())
    emphasised = set(re.findall(r"\*([^*`]+)\*", re.sub(r"`[^`]*`", "", words)))
    assert emphasised <= panel_titles(), "italics in a runbook mark only panel titles"
    assert set(re.findall(r"\b(?:Cassandra|Casstat)[A-Z]\w+", text)) <= set(NAMES)
    assert emphasised or re.search(r"`(casstat|nodetool|curl)\b", words), "no panel and no command to start with"


@cache
def panel_titles() -> set[str]:
    """Return the titles of all panels on the committed Prometheus dashboards."""
    dashboards = (json.loads(path.read_text()) for path in DASHBOARDS.glob("*.json"))
    panels = [panel for dashboard in dashboards for panel in dashboard["panels"]]
    inside = [inner for panel in panels for inner in panel.get("panels", [])]
    return {panel["title"] for panel in (*panels, *inside) if panel["type"] != "row"}


def test_every_runbook_has_an_alert() -> None:
    assert {path.stem for path in RUNBOOKS.glob("*.md")} == set(NAMES)


def test_every_alert_has_a_test_case() -> None:
    assert CASES.keys() | ABSENCE.keys() == set(NAMES)
    for subject, alerts in ALERTS.items():
        tests = list(checks_of(alerts))
        assert [test["name"] for test in tests] == list(dict.fromkeys(alert.name for alert in alerts)), subject
        assert all(test["promql_expr_test"] and test["input_series"] for test in tests)


def test_committed_files_are_current() -> None:
    """If this test fails, run `python -m dashboards.rules` to write the files."""
    assert {path.name: path.read_text() for path in COMMITTED.glob("*.yml")} == dict(rule_files())


@cache
def rules_of(*runbooks: str, **job: str) -> list[dict[str, Any]]:
    """Return all rules in the files that `rule_files` makes with these arguments."""
    rules: list[dict[str, Any]] = []
    for name, text in rule_files(*runbooks, **job):
        (group,) = yaml.safe_load(text)["groups"]
        assert f"{group['name']}.yml" == name
        rules += group["rules"]
    return rules


def test_runbook_url_is_a_url_or_absent() -> None:
    without_urls = [rule for rule in rules_of() if "alert" in rule]
    with_urls = [rule for rule in rules_of("https://wiki.example/books") if "alert" in rule]
    assert len(without_urls) == len(with_urls) == len(ALL_ALERTS)
    for rule in without_urls:
        assert "runbook_url" not in rule["annotations"]
        assert (ROOT / rule["annotations"]["runbook"]).is_file()
    for rule in with_urls:
        assert rule["annotations"]["runbook_url"] == f"https://wiki.example/books/{rule['alert']}.md"


def test_every_rule_selects_the_given_job() -> None:
    texts = [rule["expr"] for rule in rules_of(job='k8s/"x"')]
    assert not [text for text in texts if f'job="{JOB}"' in text]
    selecting = [text for text in texts if not re.search(r"\w:\w", text)]
    assert selecting
    assert all('job="k8s/\\"x\\""' in text for text in selecting)


def test_the_page_lists_every_alert() -> None:
    before, _, rest = PAGE.read_text().partition("<!-- alerts -->\n")
    _, _, after = rest.partition("<!-- /alerts -->\n")
    expected = "\n".join([before + "<!-- alerts -->", *_table(), "<!-- /alerts -->", after])
    golden.check(PAGE, expected)


def _table() -> list[str]:
    lines = []
    for subject, alerts in ALERTS.items():
        lines += [f"### {subject}", "", "| alert | threshold | warning | critical | for |", "|---|---|---|---|---|"]
        for name in dict.fromkeys(alert.name for alert in alerts):
            bounds = {alert.severity: alert for alert in alerts if alert.name == name}
            first = next(iter(bounds.values()))
            sign = "<" if THRESHOLDS[first.threshold].below else ">"
            cells = [_condition(sign, bounds[severity]) if severity in bounds else "" for severity in SEVERITIES]
            lines.append(
                f"| [{name}](runbooks/{name}.md) | `{first.threshold}` | {' | '.join(cells)} | {_time(first.for_s)} |"
            )
        lines.append("")
    return lines[:-1]


def _condition(sign: str, alert: Alert) -> str:
    ratio = min_ratio(alert)
    share = f" and > {100 * ratio:g}% of {THRESHOLDS[alert.threshold].traffic}" if ratio else ""
    return f"{sign} {format_number(alert.bound)}{share}"


def _time(seconds: float) -> str:
    return f"{seconds / 3600:g} h" if seconds >= 3600 else f"{seconds / 60:g} min" if seconds else "at once"

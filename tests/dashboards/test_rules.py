"""The rules: made of what is measured, with the table's thresholds, each with a runbook and with cases."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards.expression import metrics_of
from dashboards.rules.__main__ import COMMITTED
from dashboards.rules.alert import CRITICAL, JOB, SEVERITIES, WARNING, Alert, format_number
from dashboards.rules.all_alerts import ALERTS, alert_list, identity_labels
from dashboards.rules.burn_rate import WINDOWS, nearest_le, recording_rules
from dashboards.rules.rule_files import rule_files
from dashboards.signals.all_signals import SIGNALS
from dashboards.thresholds import OBJECTIVES, THRESHOLDS
from tests.dashboards.absence_checks import ABSENCE
from tests.dashboards.alert_cases import CASES
from tests.dashboards.rule_checks import checks_of
from tests.exporters.prometheus.parsed import parsed
from tests.exporters.prometheus.test_names import whole

ROOT = Path(__file__).parent.parent.parent
DASHBOARDS = ROOT / "dashboards" / "grafana" / "json" / "prometheus"
BOOKS = ROOT / "docs" / "runbooks"
PAGE = ROOT / "docs" / "rules.md"
HEADINGS = ["Meaning", "Impact", "Diagnosis", "Mitigation", "Harmless when"]
NAMES = list(dict.fromkeys(alert.name for alert in alert_list()))
# A metric in a query, with what selects its series.
SELECTED = re.compile(r"([a-zA-Z_:][\w:]*)\{([^}]*)\}")
RATE = re.compile(r"(?:rate|increase|deriv)\([^[]*\[(\d+)([mh])\]")
# What was lost once is lost: these tell of it at once, and wake nobody.
TELLS_OF_EVENTS = ("CasstatSinkLosing", "CasstatJournalLosing")
MATCHED = re.compile(r"(\w+)(?:=~|!~|!=|=)\"")
ids = [f"{alert.name}-{alert.severity}" for alert in alert_list()]
each_alert = pytest.mark.parametrize("alert", alert_list(), ids=ids)
each_name = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module")
def known() -> Mapping[str, set[str]]:
    """Return the labels of all series that the agent may have, by name."""
    found: dict[str, set[str]] = {"up": {"job", "instance"}}
    for name, labels in parsed(whole(openmetrics=False)).values:
        found.setdefault(name, {"job"}).update(dict(labels))
    for record in recording_rules():
        found.setdefault(record.name, set()).update(("cluster", "dc", "operation", "le"))
    # Only where a metric had no room, or a source is read.
    found["casstat_series_refused"] = found["casstat_series"] | {"metric"}
    found["casstat_source_up"] = found["casstat_series"] | {"source"}
    return found


def test_there_are_enough() -> None:
    assert len(NAMES) >= 25
    assert len(alert_list()) == len({(alert.name, alert.severity) for alert in alert_list()})


@each_alert
def test_an_alert_is_made_of_what_is_measured(alert: Alert, known: Mapping[str, set[str]]) -> None:
    selected = SELECTED.findall(alert.expr)
    assert selected
    for metric, matchers in selected:
        assert metric in known
        assert set(MATCHED.findall(matchers)) <= known[metric], metric
        assert f'job="{JOB}"' in matchers or ":" in metric


@each_alert
def test_its_threshold_is_the_tables(alert: Alert) -> None:
    row = THRESHOLDS[alert.threshold]
    assert alert.severity in SEVERITIES
    assert alert.bound == (row.warning if alert.severity == WARNING else row.critical)
    assert format_number(alert.bound) in alert.expr.replace("(", " ").split()
    assert alert.for_s == row.for_s


@each_alert
def test_an_alert_on_a_signal_has_its_expression(alert: Alert) -> None:
    if alert.threshold in SIGNALS:
        assert {metric for metric in metrics_of(SIGNALS[alert.threshold].expression) if metric in alert.expr}


@each_alert
def test_an_alert_on_a_rate_waits_longer_than_its_window(alert: Alert) -> None:
    """Else a single event, which keeps the rate up for the whole window, is enough."""
    compared = alert.expr.partition(f" {format_number(alert.bound)}")[0]
    if RATE.search(compared) and alert.name not in TELLS_OF_EVENTS:
        windows = RATE.findall(alert.expr)
        assert alert.for_s > 60 * min(int(size) * (60 if unit == "h" else 1) for size, unit in windows)


@pytest.mark.parametrize("name", TELLS_OF_EVENTS)
def test_a_single_event_does_not_page(name: str) -> None:
    assert {alert.severity for alert in alert_list() if alert.name == name} == {WARNING}


@each_alert
def test_a_summary_does_not_say_the_opposite(alert: Alert) -> None:
    """The title of a signal says what is well where low values are bad."""
    if THRESHOLDS[alert.threshold].below and alert.threshold in SIGNALS:
        assert SIGNALS[alert.threshold].title not in alert.summary


@pytest.mark.parametrize("name", NAMES)
def test_critical_silences_the_warning_about_the_same_thing_alone(name: str) -> None:
    """Alertmanager takes labels that neither alert has for equal, so each label that tells two apart must be listed."""
    (labels,) = {alert.by for alert in alert_list() if alert.name == name}
    assert set(labels) <= set(identity_labels())


def test_the_page_has_the_inhibition() -> None:
    assert f"    equal: [{', '.join(identity_labels())}]\n" in PAGE.read_text()


@each_alert
def test_it_tells_where_and_how_much(alert: Alert) -> None:
    assert alert.name.startswith(("Cassandra", "Casstat"))
    for text in (alert.summary, alert.description):
        assert text.count("{{") == text.count("}}")
        assert "$labels." in text
        assert "\n" not in text
    assert alert.summary != alert.description


@pytest.mark.parametrize("name", THRESHOLDS)
def test_critical_is_worse_than_warning(name: str) -> None:
    row = THRESHOLDS[name]
    assert name in SIGNALS or any(alert.threshold == name for alert in alert_list())
    assert (row.warning, row.critical) != (None, None)
    assert row.for_s >= 0
    if row.warning is not None and row.critical is not None:
        assert row.critical < row.warning if row.below else row.critical > row.warning


@pytest.mark.parametrize("name", OBJECTIVES)
def test_an_objective_is_at_an_edge_that_there_is(name: str, known: Mapping[str, set[str]]) -> None:
    bound_s = OBJECTIVES[name].bound_s
    assert float(nearest_le(bound_s)) == pytest.approx(bound_s, rel=0.1)
    assert 0.5 < OBJECTIVES[name].target < 1
    with pytest.raises(ValueError, match="not an upper bound"):
        nearest_le(0.123)


def test_the_long_window_comes_with_a_short_one() -> None:
    assert WINDOWS == {WARNING: ("1d", "2h"), CRITICAL: ("1h", "5m")}


def test_recorded_names_say_what_they_are() -> None:
    for record in recording_rules():
        assert re.fullmatch(r"[a-z_]+:[a-z_]+:[a-z_]+\d+[mhd]", record.name)


@each_name
def test_every_alert_has_a_runbook(name: str) -> None:
    text = (BOOKS / f"{name}.md").read_text()
    assert text.startswith(f"# {name}\n")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == HEADINGS
    assert len(text) < 2500
    words = " ".join(text.split())
    emphasised = set(re.findall(r"\*([^*`]+)\*", re.sub(r"`[^`]*`", "", words)))
    assert emphasised <= panel_titles(), "a runbook puts nothing but panels' titles in italics"
    assert set(re.findall(r"\b(?:Cassandra|Casstat)[A-Z]\w+", text)) <= set(NAMES)
    assert emphasised or re.search(r"`(casstat|nodetool|curl)\b", words), "no panel and no command to start with"


def panel_titles() -> set[str]:
    """Return the titles of all panels of the committed dashboards for Prometheus."""
    dashboards = (json.loads(path.read_text()) for path in DASHBOARDS.glob("*.json"))
    panels = [panel for dashboard in dashboards for panel in dashboard["panels"]]
    inside = [inner for panel in panels for inner in panel.get("panels", [])]
    return {panel["title"] for panel in (*panels, *inside) if panel["type"] != "row"}


def test_every_runbook_has_an_alert() -> None:
    assert {path.stem for path in BOOKS.glob("*.md")} == set(NAMES)


def test_every_alert_has_a_case() -> None:
    assert CASES.keys() | ABSENCE.keys() == set(NAMES)
    for subject, alerts in ALERTS.items():
        tests = list(checks_of(alerts))
        assert [test["name"] for test in tests] == list(dict.fromkeys(alert.name for alert in alerts)), subject
        assert all(test["promql_expr_test"] and test["input_series"] for test in tests)


def test_committed_files_are_current() -> None:
    """`python -m dashboards.rules` writes them."""
    assert {path.name: path.read_text() for path in COMMITTED.glob("*.yml")} == dict(rule_files())


def rules_of(files: Iterable[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    for name, text in files:
        (group,) = yaml.safe_load(text)["groups"]
        assert f"{group['name']}.yml" == name
        yield from group["rules"]


def test_runbook_url_is_a_url_or_absent() -> None:
    for rule in rules_of(rule_files()):
        if "alert" in rule:
            assert "runbook_url" not in rule["annotations"]
            assert (ROOT / rule["annotations"]["runbook"]).is_file()
    for rule in rules_of(rule_files("https://wiki.example/books")):
        if "alert" in rule:
            assert rule["annotations"]["runbook_url"] == f"https://wiki.example/books/{rule['alert']}.md"


def test_every_rule_selects_the_job_that_is_chosen() -> None:
    texts = [rule["expr"] for rule in rules_of(rule_files(job='k8s/"x"'))]
    assert not [text for text in texts if f'job="{JOB}"' in text]
    assert all('job="k8s/\\"x\\""' in text for text in texts if not re.search(r"\w:\w", text))


def test_the_page_lists_every_alert() -> None:
    before, _, rest = PAGE.read_text().partition("<!-- alerts -->\n")
    _, _, after = rest.partition("<!-- /alerts -->\n")
    wanted = "\n".join([before + "<!-- alerts -->", *_table(), "<!-- /alerts -->", after])
    if os.environ.get("UPDATE_GOLDEN"):
        PAGE.write_text(wanted)
    assert PAGE.read_text() == wanted, "run UPDATE_GOLDEN=1 make check"


def _table() -> list[str]:
    lines = []
    for subject, alerts in ALERTS.items():
        lines += [f"### {subject}", "", "| alert | threshold | warning | critical | for |", "|---|---|---|---|---|"]
        for name in dict.fromkeys(alert.name for alert in alerts):
            bounds = {alert.severity: alert for alert in alerts if alert.name == name}
            first = next(iter(bounds.values()))
            sign = "<" if THRESHOLDS[first.threshold].below else ">"
            cells = [_condition(sign, bounds[each]) if each in bounds else "" for each in SEVERITIES]
            lines.append(
                f"| [{name}](runbooks/{name}.md) | `{first.threshold}` | {' | '.join(cells)} | {_time(first.for_s)} |"
            )
        lines.append("")
    return lines[:-1]


def _condition(sign: str, alert: Alert) -> str:
    share = f" and > {100 * alert.min_ratio:g} % of {THRESHOLDS[alert.threshold].traffic}" if alert.min_ratio else ""
    return f"{sign} {format_number(alert.bound)}{share}"


def _time(seconds: float) -> str:
    return f"{seconds / 3600:g} h" if seconds >= 3600 else f"{seconds / 60:g} min" if seconds else "at once"

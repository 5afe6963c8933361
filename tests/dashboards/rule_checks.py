"""promtool tests generated from alert cases; every scenario has its own cluster, so one test covers them all."""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Any, NamedTuple

from dashboards.rules.alert import CRITICAL, Alert
from dashboards.rules.rule_files import ALERTS
from dashboards.thresholds import THRESHOLDS
from tests.dashboards.absence_checks import ABSENCE
from tests.dashboards.alert_cases import CASES, Case, Line, only_in

ALL_ALERTS = [alert for alerts in ALERTS.values() for alert in alerts]
"""All alerts; an alert with two severities appears twice."""
STALE = "stale"
# A single event is simulated as one minute in which the rate is this multiple of a value just beyond the threshold.
BURST = 20


class Scenario(NamedTuple):
    """A cluster's series before and after t1, the minute of the first check; `after` is None if they end at t1.

    reset   whether the counters are reset in the middle of each of the two periods.
    fires   whether the alert must be firing at t1.
    stays   whether the alert must still be firing at the end.
    """

    name: str
    before: Sequence[Line]
    after: Sequence[Line] | None
    reset: bool
    fires: bool
    stays: bool


def min_ratio(alert: Alert) -> float:
    """Return the minimum ratio of errors to traffic that the alert also requires; 0 for none."""
    return THRESHOLDS[alert.threshold].min_ratios[alert.severity == CRITICAL]


def checks_of(alerts: Sequence[Alert]) -> Iterator[dict[str, Any]]:
    """Yield the promtool tests for these alerts, one per alert name."""
    for name in dict.fromkeys(alert.name for alert in alerts):
        yield ABSENCE[name] if name in ABSENCE else _test(name, [alert for alert in alerts if alert.name == name])


def _test(name: str, alerts: Sequence[Alert]) -> dict[str, Any]:
    case = CASES[name]
    t1 = case.lead + ceil(max(alert.for_s for alert in alerts) / 60) + 2
    t2 = t1 + case.settle
    scenarios = {alert.severity: list(_scenarios(alert, case, t1)) for alert in alerts}
    return {
        "name": name,
        "interval": "1m",
        "input_series": [
            {"series": series, "values": " ".join(values)}
            for severity, group in scenarios.items()
            for scenario in group
            for series, values in _series(f"{severity}-{scenario.name}", scenario, t1, t2)
        ],
        "promql_expr_test": [
            {
                "expr": f'group by (cluster) (ALERTS{{alertname="{name}",alertstate="firing",'
                f'severity="{severity}",cluster=~"{severity}-.*"}})',
                "eval_time": f"{minute}m",
                "exp_samples": [
                    {"labels": f'{{cluster="{severity}-{scenario.name}"}}', "value": 1}
                    for scenario in group
                    if expected(scenario)
                ],
            }
            for severity, group in scenarios.items()
            for minute, expected in ((t1, _fires), (t2, _stays))
        ]
        + [_never(name, severity, group, t2) for severity, group in scenarios.items()]
        + ([_labels(name, alerts[0].by, t1)] if "cluster" in alerts[0].by else []),
    }


def _never(name: str, severity: str, scenarios: Sequence[Scenario], t2: int) -> dict[str, Any]:
    """Return the check that the alert never fired in the scenarios in which it must not fire."""
    quiet = "|".join(f"{severity}-{scenario.name}" for scenario in scenarios if not scenario.fires)
    alert = f'ALERTS{{alertname="{name}",alertstate="firing",severity="{severity}",cluster=~"{quiet}"}}'
    return {"expr": f"count by (cluster) (count_over_time({alert}[{t2}m]))", "eval_time": f"{t2}m", "exp_samples": []}


def _labels(name: str, by: Sequence[str], t1: int) -> dict[str, Any]:
    """Return the check that a firing alert has no labels other than those in `by` and the ones that all alerts have."""
    without = ", ".join(("alertname", "alertstate", "severity", *by))
    return {
        "expr": f'group without ({without}) (ALERTS{{alertname="{name}",alertstate="firing",severity!=""}})',
        "eval_time": f"{t1}m",
        "exp_samples": [{"labels": "{}", "value": 1}],
    }


def _fires(scenario: Scenario) -> bool:
    return scenario.fires


def _stays(scenario: Scenario) -> bool:
    return scenario.stays


def _scenarios(alert: Alert, case: Case, t1: int) -> Iterator[Scenario]:
    value = case.bad(alert.bound)
    bad = [*case.series(value, t1), *_traffic(case, alert, value, 1.1)]
    good = [*case.series(case.good(alert.bound), t1), *_traffic(case, alert, value, 100)]
    calm = case.calm(case.good(alert.bound), t1) if case.calm else good
    yield Scenario("fires", bad, bad, reset=False, fires=True, stays=True)
    yield Scenario("quiet", good, good, reset=False, fires=False, stays=False)
    yield Scenario("resolves", bad, calm, reset=False, fires=True, stays=False)
    yield Scenario("removed", bad, None, reset=False, fires=True, stays=case.lasts)
    if any(line.counter for line in bad):
        # The part of an increase between the last scrape and a reset is lost, so a higher value is needed.
        worse = [*case.series(1.5 * value, t1), *_traffic(case, alert, 1.5 * value, 1.5)]
        yield Scenario("reset", worse, worse, reset=True, fires=True, stays=True)
        yield Scenario("reset-quiet", good, good, reset=True, fires=False, stays=False)
    if case.harmless:
        yield _steady("harmless", case.harmless(t1), fires=False)
    if min_ratio(alert):
        yield _steady("busy", [*case.series(value, t1), *_traffic(case, alert, value, 0.9)], fires=False)
    if event := _event(case, alert, t1):
        yield _steady("event", event, fires=False)
    for special in case.special:
        if special.severity == alert.severity:
            yield _steady(special.name, special.series(t1), fires=special.fires)


def _steady(name: str, lines: Sequence[Line], *, fires: bool) -> Scenario:
    return Scenario(name, lines, lines, reset=False, fires=fires, stays=fires)


def _traffic(case: Case, alert: Alert, value: float, times: float) -> list[Line]:
    """Return the traffic at which the error ratio is `times` the alert's minimum ratio; empty without a minimum."""
    ratio = min_ratio(alert)
    return [case.traffic(value / (times * ratio))] if case.traffic and ratio else []


def _event(case: Case, alert: Alert, t1: int) -> list[Line]:
    """Return the case's series with a single event.

    Unless the case defines `event`, the counters grow only in one minute, and the result is empty if the alert has no
    `for` duration or compares a gauge.
    """
    if case.event:
        return list(case.event(case.lead))
    if not alert.for_s or not all(line.counter for line in case.series(case.bad(alert.bound), t1)):
        return []
    lines = case.series(BURST * case.bad(alert.bound), t1)
    burst = [only_in(case.lead, line) for line in lines]
    return [*burst, *_traffic(case, alert, case.bad(alert.bound), 1.1)]


def _series(cluster: str, scenario: Scenario, t1: int, t2: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the values of each series in a scenario, with one value per minute."""
    before = {_named(cluster, line): line for line in scenario.before}
    after = {_named(cluster, line): line for line in scenario.after or ()}
    for name in dict.fromkeys((*before, *after)):
        values = _Values(reset_at=(t1 // 2, (t1 + t2) // 2) if scenario.reset else ())
        values.take(before.get(name), range(t1 + 1))
        values.take(after.get(name), range(t1 + 1, t2 + 1))
        yield name, values.texts


class _Values:
    """A series' values in promtool's notation."""

    def __init__(self, reset_at: Sequence[int]) -> None:
        self._reset_at = reset_at
        self._counted = 1000.0
        self.texts: list[str] = []

    def take(self, line: Line | None, minutes: range) -> None:
        if line is None:
            # A series can become stale only if it has existed.
            existed = any(text not in ("_", STALE) for text in self.texts)
            self.texts += [STALE if existed and index == 0 else "_" for index in range(len(minutes))]
            return
        for minute in minutes:
            self.texts.append(self._text(line, minute))

    def _text(self, line: Line, minute: int) -> str:
        value = line.at(minute)
        if value is None:
            return "_" if not self.texts or self.texts[-1] in ("_", STALE) else STALE
        if not line.counter:
            return f"{value:.12g}"
        self._counted = 0.0 if minute in self._reset_at else self._counted + 60 * value
        return f"{self._counted:.12g}"


def _named(cluster: str, line: Line) -> str:
    inside = ",".join(f'{name}="{value}"' for name, value in (("cluster", cluster), *line.labels))
    return f"{line.metric}{{{inside}}}"

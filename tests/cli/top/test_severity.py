"""`top` derives every severity from the thresholds that alerts and panels also use."""

from dataclasses import replace

import pytest

from cli.top.screen_rows import OF_NODES, SIGNALS, cluster_level, level, order
from cli.top.view_state import SETS, ViewState
from collector.live.cluster_interval import State
from dashboards.signals.all_signals import SIGNALS as ALL_SIGNALS
from dashboards.signals.signal import Unit
from dashboards.thresholds import THRESHOLDS, Severity
from exporters.live.live_columns import COLUMN_INDEX
from tests.dashboards.rule_checks import ALL_ALERTS
from tests.exporters.live.generated_frames import frames

SCALES = {Unit.SECONDS: ("_ms", 1000), Unit.RATIO: ("_pct", 100), Unit.PER_S: ("_per_s", 1), Unit.COUNT: ("", 1)}


@pytest.mark.parametrize("name", SIGNALS)
def test_a_column_has_the_severity_of_its_signal(name: str) -> None:
    signal, scale = SIGNALS[name]
    threshold = THRESHOLDS[signal]
    assert not threshold.below
    for bound, beyond in ((threshold.warning, Severity.WARNING), (threshold.critical, Severity.CRITICAL)):
        if bound is not None:
            assert level(name, bound * scale) < beyond
            assert level(name, (bound + 0.001) * scale) == beyond
    assert level(name, None) is level(name, 0.0) is Severity.OK


@pytest.mark.parametrize("name", SIGNALS)
def test_a_column_is_in_the_unit_of_its_signal(name: str) -> None:
    signal, scale = SIGNALS[name]
    assert name in COLUMN_INDEX
    suffix, expected = SCALES[ALL_SIGNALS[signal].unit]
    assert name.endswith(suffix)
    assert scale == expected


def test_columns_without_a_signal_have_no_severity() -> None:
    others = {name for shown in SETS for name in shown.columns} - set(SIGNALS)
    assert others
    assert all(level(name, 1e9) is Severity.OK for name in others)


@pytest.mark.parametrize(("signal", "bound"), [("read_p99", 0.5), ("write_p99", 0.25)])
def test_a_percentile_is_critical_at_five_times_its_objective(signal: str, bound: float) -> None:
    assert (THRESHOLDS[signal].warning, THRESHOLDS[signal].critical) == (bound / 5, bound)


def test_an_alert_and_top_become_critical_at_the_same_value() -> None:
    alerts = {alert.threshold: alert.bound for alert in ALL_ALERTS if alert.severity == "critical"}
    shared = {name: (signal, scale) for name, (signal, scale) in SIGNALS.items() if signal in alerts}
    assert len(shared) >= 10
    for name, (signal, scale) in shared.items():
        assert level(name, alerts[signal] * scale * 1.001) is Severity.CRITICAL
        assert level(name, alerts[signal] * scale) is not Severity.CRITICAL


def test_totals_over_all_nodes_have_no_severity() -> None:
    assert {"compactions_pending", "flush_pending", "read_stage_pending"} <= OF_NODES
    assert not OF_NODES & {"heap_pct", "gc_pct", "peers_unreachable", "read_p99_ms"}
    assert cluster_level("compactions_pending", 1e6) is Severity.OK
    assert cluster_level("read_p99_ms", 1e6) is Severity.CRITICAL


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("sort", ["", "read_p99_ms"])
def test_nodes_without_values_are_listed_after_equally_severe_nodes(sort: str, reverse: bool) -> None:
    frame = frames()[-1]
    column = COLUMN_INDEX["read_p99_ms"]
    values = (float("nan"), 3.0, 1.0, float("nan"), 2.0)
    nodes = tuple(
        replace(
            frame.nodes[0],
            name=str(index),
            state=State.UP,
            cells=tuple(value if at == column else float("nan") for at in range(len(COLUMN_INDEX))),
        )
        for index, value in enumerate(values)
    )
    shown = order(replace(frame, nodes=nodes), ViewState(chosen=1, sort=sort, reverse=reverse))
    assert shown == ([2, 4, 1, 0, 3] if reverse else [1, 4, 2, 0, 3])

"""The promtool test for the alert that fires when all agents are absent; that alert has no cluster label."""

from collections.abc import Mapping
from typing import Any

NAME = "CasstatAgentsAbsent"


def _series(cluster: str, values: str) -> dict[str, str]:
    labels = f'job="casstat",cluster="{cluster}",node="n1",version="1.0"'
    return {"series": f"casstat_build_info{{{labels}}}", "values": values}


def _expected(minute: int, *, fires: bool) -> dict[str, Any]:
    samples = [{"labels": '{job="casstat"}', "value": 1}] if fires else []
    return {
        "expr": f'group by (job) (ALERTS{{alertname="{NAME}",alertstate="firing",severity="critical"}})',
        "eval_time": f"{minute}m",
        "exp_samples": samples,
    }


ABSENCE: Mapping[str, dict[str, Any]] = {
    NAME: {
        "name": NAME,
        "interval": "1m",
        # Cluster "a" is present until minute 10 and again from minute 40, and cluster "b" until minute 20.
        "input_series": [_series("a", "1x10 stale _x28 1x20"), _series("b", "1x20 stale _x50")],
        "promql_expr_test": [
            _expected(19, fires=False),
            _expected(24, fires=False),
            _expected(27, fires=True),
            _expected(39, fires=True),
            _expected(42, fires=False),
        ],
    }
}

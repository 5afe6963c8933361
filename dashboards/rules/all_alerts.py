"""All alerts by subject."""

from collections.abc import Mapping
from types import MappingProxyType

from dashboards.rules.alert import Alert
from dashboards.rules.alerts import agent, cluster, jvm, machine, overload, requests, storage

ALERTS: Mapping[str, tuple[Alert, ...]] = MappingProxyType(
    {
        "cluster": cluster.ALERTS,
        "requests": requests.ALERTS,
        "overload": overload.ALERTS,
        "storage": storage.ALERTS,
        "jvm": jvm.ALERTS,
        "machine": machine.ALERTS,
        "agent": agent.ALERTS,
    }
)


def alert_list() -> tuple[Alert, ...]:
    """Return all alerts; an alert with two severities appears twice."""
    return tuple(alert for alerts in ALERTS.values() for alert in alerts)

"""All dashboards, in the order in which they are linked."""

from dashboards.grafana.definitions import agent, jvm, latency, load, node, overview, storage, tables

DASHBOARDS = (
    overview.DASHBOARD,
    node.DASHBOARD,
    tables.DASHBOARD,
    latency.DASHBOARD,
    jvm.DASHBOARD,
    storage.DASHBOARD,
    load.DASHBOARD,
    agent.DASHBOARD,
)

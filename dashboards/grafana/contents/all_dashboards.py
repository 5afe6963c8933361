"""All boards, in the order in which they link to each other."""

from dashboards.grafana.contents import agent, jvm, latency, load, node, overview, storage, tables

BOARDS = (
    overview.BOARD,
    node.BOARD,
    tables.BOARD,
    latency.BOARD,
    jvm.BOARD,
    storage.BOARD,
    load.BOARD,
    agent.BOARD,
)

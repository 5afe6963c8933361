"""Alerts on cluster membership: nodes that are down, restarted, out of service or in disagreement; missing agents."""

from collector.model.metric import Aggregation
from dashboards.expression import Gauge, where
from dashboards.promql import NODE_LABELS, selector
from dashboards.rules.alert import (
    CLUSTER,
    CRITICAL,
    MATCH,
    WARNING,
    WHERE,
    agent_series,
    aggregate,
    rule_query,
    signal_alerts,
    threshold_alerts,
)
from dashboards.signals.all_signals import SIGNALS

OF_THE_NODE = where(source=("cassandra", "nodetool *"))
"""Selects the sources that read the node; other sources read its machine."""
ANSWERS = aggregate("max", agent_series("casstat_source_up", OF_THE_NODE))
"""1 for a node that its agent can read, 0 for one that it cannot."""
_UNREACHABLE = rule_query(SIGNALS["nodes_unreachable"].expression, CLUSTER)
_RECENT = aggregate("max", f"last_over_time({agent_series('casstat_source_up', OF_THE_NODE)}[1h])")
_LOST = aggregate("count", f"{_RECENT} unless {ANSWERS} == 1", ("cluster", "dc", "rack"))
_LIVE = "cassandra_endpoints_live"
# One series per agent. Agents that have not reached their nodes yet have no cluster label and are excluded.
_AGENT = f'casstat_build_info{{{MATCH},cluster!=""}}'
_RECENT_AGENTS = aggregate("count", f"last_over_time({_AGENT}[1h])", (*CLUSTER, "node"))
_CURRENT_AGENTS = aggregate("count", _AGENT, (*CLUSTER, "node"))
# `unless` works even if no agent is left, whereas a count of the remaining agents would then be absent.
_GONE = aggregate("count", f"{_RECENT_AGENTS} unless {_CURRENT_AGENTS}", CLUSTER)
_MISSING = f"{_GONE} / {aggregate('count', _RECENT_AGENTS, CLUSTER)}"
_MISSING_SUMMARY = "Agents in {{ $labels.cluster }} are missing"
_SCHEMAS = aggregate("count", selector("cassandra_schema_version", (), MATCH), (*CLUSTER, "schema_version"))
_MODE = "cassandra_operation_mode"
_DATACENTER = ("cluster", "dc")


def _in(*modes: str) -> str:
    return aggregate("count", selector(_MODE, where(operation_mode=modes), MATCH), (*NODE_LABELS, "operation_mode"))


# Limits an alert to nodes in service, because joining and drained nodes need not accept clients.
_IN_SERVICE = f"and on ({', '.join(NODE_LABELS)}) {_in('NORMAL')}"
_RUNNING = rule_query(SIGNALS["native_running"].expression)

ALERTS = (
    *threshold_alerts(
        "CasstatAgentsAbsent",
        "agents_absent",
        f"absent({agent_series('casstat_build_info')})",
        "Prometheus has no series from any casstat agent in job {{ $labels.job }}",
        "No agent in job {{ $labels.job }} can be scraped, or service discovery finds none: "
        "the clusters in this job are not monitored.",
        by=("job",),
    ),
    *threshold_alerts(
        "CasstatAgentsMissing",
        "agents_missing",
        _MISSING,
        _MISSING_SUMMARY,
        "{{ $value | humanizePercentage }} of the agents in {{ $labels.cluster }} seen within the last hour are "
        "missing: their machines are down, or Prometheus no longer finds or reaches them.",
        by=CLUSTER,
        only=WARNING,
    ),
    *threshold_alerts(
        "CasstatAgentsMissing",
        "agents_missing",
        _MISSING,
        _MISSING_SUMMARY,
        "{{ $value | humanizePercentage }} of the agents in {{ $labels.cluster }} seen within the last hour are "
        "missing, and the remaining nodes do not confirm that all nodes are reachable.",
        by=CLUSTER,
        only=CRITICAL,
        # Does not fire if the nodes are up and only their agents are missing.
        also=f"unless on (cluster) {_UNREACHABLE} == 0",
    ),
    *signal_alerts(
        "CassandraNodesUnreachable",
        "nodes_unreachable",
        "A node of {{ $labels.cluster }} cannot reach {{ $value | humanize }} of the other nodes.",
        by=CLUSTER,
    ),
    *threshold_alerts(
        "CassandraNodeDown",
        "node_answers",
        ANSWERS,
        "Cassandra is down on {{ $labels.node }}",
        f"The agent for {WHERE} gets no response from Cassandra, and the other nodes do not confirm that all nodes are "
        "reachable.",
        # If the other nodes see the node as up, CasstatNodeUnread fires instead: the node is running, but casstat
        # cannot read it.
        also=f"unless on (cluster) {_UNREACHABLE} == 0",
    ),
    *threshold_alerts(
        "CassandraRacksDown",
        "racks_down",
        aggregate("count", _LOST, _DATACENTER),
        "Nodes are down in several racks of {{ $labels.dc }}",
        "Nodes are down in {{ $value | humanize }} racks of {{ $labels.cluster }}, {{ $labels.dc }}: "
        "with three replicas, part of the data may lack a quorum.",
        by=_DATACENTER,
        also=f"and on (cluster) {_UNREACHABLE} > $bound",
    ),
    *threshold_alerts(
        "CassandraNodesDisagree",
        "nodes_live_spread",
        f"{rule_query(Gauge(_LIVE, aggregation=Aggregation.MAX), CLUSTER)} - {rule_query(Gauge(_LIVE), CLUSTER)}",
        "Nodes in {{ $labels.cluster }} disagree about live nodes",
        "Nodes in {{ $labels.cluster }} see different numbers of live nodes; "
        "the highest and the lowest differ by {{ $value | humanize }}.",
        by=CLUSTER,
    ),
    *threshold_alerts(
        "CassandraRestarted",
        "restarts",
        aggregate("max", f"changes({selector('cassandra_jvm_start_time_seconds', (), MATCH)}[30m])"),
        "Cassandra restarted on {{ $labels.node }}",
        f"Cassandra on {WHERE} restarted within the last half hour (restart count {{{{ $value | humanize }}}}).",
    ),
    *threshold_alerts(
        "CassandraSchemaDisagreement",
        "schema_versions",
        aggregate("count", _SCHEMAS, CLUSTER),
        "Nodes in {{ $labels.cluster }} have different schemas",
        "Nodes in {{ $labels.cluster }} have {{ $value | humanize }} versions of the schema.",
        by=CLUSTER,
    ),
    *threshold_alerts(
        "CassandraNodeMovingForLong",
        "node_moving",
        _in("STARTING", "JOINING", "LEAVING", "MOVING", "DRAINING"),
        "{{ $labels.node }} has been {{ $labels.operation_mode }} for hours",
        f"{WHERE} has been {{{{ $labels.operation_mode }}}} for more than five hours.",
        by=(*NODE_LABELS, "operation_mode"),
    ),
    *threshold_alerts(
        "CassandraNodeOutOfService",
        "node_out_of_service",
        _in("DRAINED", "JOINING_FAILED", "DECOMMISSION_FAILED"),
        "{{ $labels.node }} is running but accepts no requests",
        f"{WHERE} is {{{{ $labels.operation_mode }}}}: its process is running but accepts no requests.",
        by=(*NODE_LABELS, "operation_mode"),
    ),
    *signal_alerts(
        "CassandraNativeTransportOff",
        "native_running",
        f"Clients cannot connect to {WHERE}: its native transport is off even though the node is in service.",
        summary="Clients cannot connect to {{ $labels.node }}",
        also=_IN_SERVICE,
    ),
    *threshold_alerts(
        "CassandraDatacenterRefusesClients",
        "native_running_anywhere",
        aggregate("max", f"{_RUNNING} {_IN_SERVICE}", _DATACENTER),
        "Clients cannot connect to any node of {{ $labels.cluster }} / {{ $labels.dc }}",
        "The native transport is off on all running nodes of {{ $labels.dc }} in {{ $labels.cluster }}.",
        by=_DATACENTER,
    ),
)

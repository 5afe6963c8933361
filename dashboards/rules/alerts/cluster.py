"""The nodes as members of the cluster: who is down, who restarted, who is not what it should be."""

from collector.model.metric import Aggregation
from dashboards.expression import Level, where
from dashboards.promql import NODE_LABELS, selector
from dashboards.rules.alert import (
    CLUSTER,
    CRITICAL,
    MATCH,
    WARNING,
    WHERE,
    across,
    alerts,
    asked,
    of_signal,
    own,
)
from dashboards.signals.all_signals import SIGNALS

OF_THE_NODE = where(source=("cassandra", "nodetool *"))
"""The sources that ask the node; the others ask its machine."""
ANSWERS = across("max", own("casstat_source_up", OF_THE_NODE))
"""1 for a node that its own agent can read, 0 for one that it cannot."""
_UNREACHABLE = asked(SIGNALS["nodes_unreachable"].expression, CLUSTER)
_LATELY = across("max", f"last_over_time({own('casstat_source_up', OF_THE_NODE)}[1h])")
_LOST = across("count", f"{_LATELY} unless {ANSWERS} == 1", ("cluster", "dc", "rack"))
_LIVE = "cassandra_endpoints_live"
# Each agent has one such series. An agent that has not reached its node yet does not know its cluster.
_AGENT = f'casstat_build_info{{{MATCH},cluster!=""}}'
_AGENTS_LATELY = across("count", f"last_over_time({_AGENT}[1h])", (*CLUSTER, "node"))
_AGENTS_NOW = across("count", _AGENT, (*CLUSTER, "node"))
# When none is left, all are missing: the count of those that are left plays no part.
_MISSING = (
    f"{across('count', f'{_AGENTS_LATELY} unless {_AGENTS_NOW}', CLUSTER)} / {across('count', _AGENTS_LATELY, CLUSTER)}"
)
_AGENTS_GONE = "Agents of {{ $labels.cluster }} have disappeared"
_SCHEMAS = across("count", selector("cassandra_schema_version", (), MATCH), (*CLUSTER, "schema_version"))
_MODE = "cassandra_operation_mode"
_DATACENTER = ("cluster", "dc")


def _in(*modes: str) -> str:
    return across("count", selector(_MODE, where(operation_mode=modes), MATCH), (*NODE_LABELS, "operation_mode"))


# Clients are not meant to connect to a node that joins, or was drained.
_IN_SERVICE = f"and on ({', '.join(NODE_LABELS)}) {_in('NORMAL')}"
_RUNNING = asked(SIGNALS["native_running"].expression)

ALERTS = (
    *alerts(
        "CasstatAgentsAbsent",
        "agents_absent",
        f"absent({own('casstat_build_info')})",
        "Prometheus has no series of any casstat agent in job {{ $labels.job }}",
        "No agent of job {{ $labels.job }} can be scraped, or service discovery finds none: no cluster is watched.",
        by=("job",),
    ),
    *alerts(
        "CasstatAgentsMissing",
        "agents_missing",
        _MISSING,
        _AGENTS_GONE,
        "{{ $value | humanizePercentage }} of the agents of {{ $labels.cluster }} that were there within the last hour "
        "are gone: their machines are down, or Prometheus no longer finds or reaches them.",
        by=CLUSTER,
        only=WARNING,
    ),
    *alerts(
        "CasstatAgentsMissing",
        "agents_missing",
        _MISSING,
        _AGENTS_GONE,
        "{{ $value | humanizePercentage }} of the agents of {{ $labels.cluster }} that were there within the last hour "
        "are gone, and no remaining node reports that it reaches all others.",
        by=CLUSTER,
        only=CRITICAL,
        # The nodes are fine, and it is only their agents that are missing.
        also=f"unless on (cluster) {_UNREACHABLE} == 0",
    ),
    *of_signal(
        "CassandraNodesUnreachable",
        "nodes_unreachable",
        "Some node of {{ $labels.cluster }} cannot reach {{ $value | humanize }} others.",
        by=CLUSTER,
    ),
    *alerts(
        "CassandraNodeDown",
        "node_answers",
        ANSWERS,
        "Cassandra is down on {{ $labels.node }}",
        f"The agent beside {WHERE} gets no answer from Cassandra, and no other node says that all are there.",
        # While all others see it, it is only casstat that does not: CasstatNodeUnread.
        also=f"unless on (cluster) {_UNREACHABLE} == 0",
    ),
    *alerts(
        "CassandraRacksDown",
        "racks_down",
        across("count", _LOST, _DATACENTER),
        "Nodes are down in several racks of {{ $labels.dc }}",
        "Nodes are down in {{ $value | humanize }} racks of {{ $labels.cluster }}, {{ $labels.dc }}: "
        "with three replicas a quorum of some data is gone.",
        by=_DATACENTER,
        also=f"and on (cluster) {_UNREACHABLE} > $bound",
    ),
    *alerts(
        "CassandraNodesDisagree",
        "nodes_live_spread",
        f"{asked(Level(_LIVE, across=Aggregation.MAX), CLUSTER)} - {asked(Level(_LIVE), CLUSTER)}",
        "Nodes of {{ $labels.cluster }} disagree on who is live",
        "Of {{ $labels.cluster }} some nodes see {{ $value | humanize }} more live nodes than others do.",
        by=CLUSTER,
    ),
    *alerts(
        "CassandraRestarted",
        "restarts",
        across("max", f"changes({selector('cassandra_jvm_start_time_seconds', (), MATCH)}[30m])"),
        "Cassandra restarted on {{ $labels.node }}",
        f"Cassandra on {WHERE} restarted {{{{ $value | humanize }}}} times in half an hour.",
    ),
    *alerts(
        "CassandraSchemaDisagreement",
        "schema_versions",
        across(
            "count",
            across("count", selector("cassandra_schema_version", (), MATCH), (*CLUSTER, "schema_version")),
            CLUSTER,
        ),
        "Nodes of {{ $labels.cluster }} have different schemas",
        "Nodes of {{ $labels.cluster }} know {{ $value | humanize }} versions of the schema.",
        by=CLUSTER,
    ),
    *alerts(
        "CassandraNodeMovingForLong",
        "node_moving",
        _in("STARTING", "JOINING", "LEAVING", "MOVING", "DRAINING"),
        "{{ $labels.node }} is {{ $labels.operation_mode }} for hours",
        f"{WHERE} has been {{{{ $labels.operation_mode }}}} for more than five hours.",
        by=(*NODE_LABELS, "operation_mode"),
    ),
    *alerts(
        "CassandraNodeOutOfService",
        "node_out_of_service",
        _in("DRAINED", "JOINING_FAILED", "DECOMMISSION_FAILED"),
        "{{ $labels.node }} runs and serves nobody",
        f"{WHERE} is {{{{ $labels.operation_mode }}}}: its process runs, and takes no requests.",
        by=(*NODE_LABELS, "operation_mode"),
    ),
    *of_signal(
        "CassandraNativeTransportOff",
        "native_running",
        f"Clients cannot connect to {WHERE}: its native transport is off, though the node is in service.",
        summary="Clients cannot connect to {{ $labels.node }}",
        also=_IN_SERVICE,
    ),
    *alerts(
        "CassandraDatacenterRefusesClients",
        "native_running_anywhere",
        across("max", f"{_RUNNING} {_IN_SERVICE}", _DATACENTER),
        "Clients cannot connect to any node of {{ $labels.cluster }} / {{ $labels.dc }}",
        "The native transport is off on every node of {{ $labels.dc }} of {{ $labels.cluster }} that is up.",
        by=_DATACENTER,
    ),
)

"""Runs all checks; a problem with one transport (Jolokia or nodetool) is a warning if the other transport works."""

from collections.abc import Iterable
from dataclasses import replace

from cli.setup.doctor import check_clock, check_jolokia, check_log, check_machine, check_node, check_nodetool
from cli.setup.doctor.check_jolokia import Transport
from cli.setup.doctor.examined_node import ExaminedNode, Finding, hidden, problems_as_warnings
from collector.model.clock import Clock
from collector.node.host.cassandra_processes import NodeFacts
from collector.node.node_sampler import NameOverrides

BY_NODETOOL = "using nodetool instead: one report every few seconds, and percentiles that decay over minutes"
BY_JOLOKIA = "not needed while Jolokia responds"


def examine(case: ExaminedNode, time: Clock, secrets: Iterable[str] = ()) -> list[Finding]:
    """Return the findings, with secrets masked. Raises click.UsageError for contradictory options."""
    jolokia = check_jolokia.examine(case)
    nodetool = check_nodetool.examine(case, used=jolokia.facts is None)
    facts = jolokia.facts or nodetool.facts
    process = check_node.examine(case, facts, [jolokia, nodetool])
    findings = [
        *process,
        *_transport_findings(jolokia, nodetool),
        check_clock.examine(case.uid, case.root),
        *_machine(case, facts, time),
        *check_log.examine(case),
    ]
    return [_masked(finding, list(secrets)) for finding in findings]


def _transport_findings(jolokia: Transport, nodetool: Transport) -> list[Finding]:
    """Return the findings about both transports; one transport's problems become warnings if the other works."""
    by_jolokia = problems_as_warnings(jolokia.findings, BY_NODETOOL) if nodetool.facts else jolokia.findings
    by_nodetool = problems_as_warnings(nodetool.findings, BY_JOLOKIA) if jolokia.facts else nodetool.findings
    return [*by_jolokia, *by_nodetool]


def _machine(case: ExaminedNode, facts: NodeFacts | None, time: Clock) -> list[Finding]:
    if facts is None:
        chosen = case.chosen
        if chosen is None and not case.asks_here:
            return []
        # The process may be known even though the node is not responding.
        facts = NodeFacts("", chosen.directories, "known", pid=chosen.pid, is_local=True) if chosen else NodeFacts()
    given = NameOverrides("", (case.settings.disk or "").removeprefix("/dev/"), case.settings.net_interface or "")
    host = check_machine.host_of(facts, given, time, case.root)
    if host is None:
        return []
    return [
        check_machine.disk(case, host),
        check_machine.interface(case, host, facts.address),
        *check_machine.examine(host, time),
    ]


def _masked(finding: Finding, secrets: list[str]) -> Finding:
    return replace(
        finding,
        summary=hidden(finding.summary, secrets),
        impact=hidden(finding.impact, secrets),
        fixes=tuple(hidden(line, secrets) for line in finding.fixes),
    )

"""The whole examination: every subject in turn, and what the ways to the node mean for each other."""

from collections.abc import Iterable
from dataclasses import replace

from cli.doctor import check_clock, check_devices, check_jolokia, check_log, check_machine, check_node, check_nodetool
from cli.doctor.check_jolokia import JolokiaTransport
from cli.doctor.examined_node import ExaminedNode
from cli.doctor.finding import Finding, lessened
from cli.doctor.report_format import hidden
from collector.host.cassandra_processes import NodeFacts
from collector.model.clock import Clock
from collector.sampling.node_sampler import NameOverrides

BY_NODETOOL = "nodetool is asked instead: every few seconds, and its percentiles decay over minutes"
BY_JOLOKIA = "not needed while Jolokia answers"


def examine(case: ExaminedNode, time: Clock, secrets: Iterable[str] = ()) -> list[Finding]:
    """Return what is found, without the secrets. Raises click.UsageError for options that cannot be meant."""
    first = check_jolokia.examine(case)
    second = check_nodetool.examine(case, used=first.facts is None)
    facts = first.facts or second.facts
    ways = _ways(first, second)
    process = check_node.examine(case, facts, [first, second])
    findings = [
        *process,
        *ways,
        check_clock.examine(case.uid, case.root),
        *_machine(case, facts, time),
        *check_log.examine(case),
    ]
    return [_without(each, list(secrets)) for each in findings]


def _ways(first: JolokiaTransport, second: JolokiaTransport) -> list[Finding]:
    """Return what is said of both: what fails is no problem while the other answers."""
    by_jolokia = lessened(first.findings, BY_NODETOOL) if second.facts else first.findings
    by_nodetool = lessened(second.findings, BY_JOLOKIA) if first.facts else second.findings
    return [*by_jolokia, *by_nodetool]


def _machine(case: ExaminedNode, facts: NodeFacts | None, time: Clock) -> list[Finding]:
    if facts is None:
        chosen = case.chosen
        if chosen is None and not case.asks_here:
            return []
        # What is known of it without its help.
        facts = NodeFacts("", chosen.directories, "known", pid=chosen.pid, here=True) if chosen else NodeFacts()
    given = NameOverrides("", (case.settings.disk or "").removeprefix("/dev/"), case.settings.net_interface or "")
    host = check_machine.host_of(facts, given, time, case.root)
    if host is None:
        return []
    return [
        check_devices.disk(case, host),
        check_devices.interface(case, host, facts.address),
        *check_machine.examine(host, time),
    ]


def _without(finding: Finding, secrets: list[str]) -> Finding:
    mend = tuple(hidden(line, secrets) for line in finding.mend)
    return replace(finding, what=hidden(finding.what, secrets), why=hidden(finding.why, secrets), mend=mend)

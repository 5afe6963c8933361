"""Checks whether Jolokia's policy allows reads, searches, the values() operation, and all MBeans that casstat reads."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.setup.demo.java_runtime import POLICY_FILE, policy_option
from cli.setup.doctor.check_jolokia_agent import CONFIGURATION, ENV, attach, find_jar, policy_path, print_policy
from cli.setup.doctor.examined_node import ExaminedNode, Finding, ok, problem, warning
from collector.model.mbean import METRICS, Labels, MBean, MBeanRequest, mbean_requests
from collector.model.metric import ScrapeInterval
from collector.node.catalogue import BEANS
from collector.node.host.cassandra_processes import AGENT
from collector.node.jolokia.client import Jolokia
from collector.printable import names_text

SUBJECT = "jolokia"
TIMEOUT_S = 10.0
FORBIDDEN = 403
POLICY = "jolokia-access.xml"
# Labels of MBeans that exist on every node; together they cover all kinds of MBean names that casstat searches for.
WITNESSES = (
    # A thread pool is created by its first task; these pools exist on every running node.
    {"path": "request", "pool": "ReadStage"},
    {"path": "internal", "pool": "GossipStage"},
    {"path": "internal", "pool": "CompactionExecutor"},
    {"keyspace": "system", "table": "local"},
    {"keyspace": "system"},
    {"cache": "KeyCache"},
)
POLICY_SUBJECT = "policy"
# An operation and an attribute that do not exist, on MBeans through which code can be run.
_STORAGE = "org.apache.cassandra.db:type=StorageService"
_RUNNING_CODE = ("com.sun.management:type=DiagnosticCommand", "com.sun.management:type=HotSpotDiagnostic", _STORAGE)
CHANGES = (
    *({"type": "exec", "mbean": mbean, "operation": "casstatProbe"} for mbean in _RUNNING_CODE),
    {"type": "write", "mbean": "java.lang:type=Memory", "attribute": "CasstatProbe", "value": 0},
    {"type": "write", "mbean": _STORAGE, "attribute": "CasstatProbe", "value": 0},
)
OPERATION = f"<allow><mbean><name>{METRICS}*</name><operation>values()</operation></mbean></allow>"

_LOCATION = re.compile(r"-javaagent:.*policyLocation=(?:file:(?://)?)?(/[^,]*)")


@dataclass(frozen=True)
class AnsweredRequest:
    """An MBean request, and Jolokia's response as parsed JSON."""

    request: MBeanRequest
    answer: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name of the MBean."""
        return str(json.loads(self.request.body)["mbean"])

    @property
    def is_refused(self) -> bool:
        """Whether the policy denies the request or access to some of its attributes."""
        value = self.answer.get("value")
        parts = value.values() if isinstance(value, dict) else [value]
        forbidden = (isinstance(part, str) and "java.lang.SecurityException" in part for part in parts)
        return self.answer.get("status") == FORBIDDEN or any(forbidden)


def examine(case: ExaminedNode, jolokia: Jolokia) -> list[Finding]:
    """Send casstat's requests once and return the findings about those that are denied. Raises JolokiaError."""
    beans = {bean.search_key: bean for bean in reversed(BEANS)}
    searched = [bean for bean in beans.values() if bean.search]
    searches = [json.dumps({"type": "search", "mbean": bean.search}) for bean in searched]
    answers = jolokia.post(searches, TIMEOUT_S)
    if any(answer.get("status") == FORBIDDEN for answer in answers):
        return [command(case, "search")]
    known = {bean.search_key: bean.labels(_names(answer)) for bean, answer in zip(searched, answers, strict=True)}
    findings = _refusals(case, _ask(jolokia, known))
    return findings + _hidden(case, jolokia, searched, known)


def _ask(jolokia: Jolokia, known: Mapping[str, Sequence[Labels]]) -> list[AnsweredRequest]:
    """Request one MBean of each kind in the catalogue, with the first known labels."""

    def first(bean: MBean) -> list[Labels]:
        return list((known[bean.search_key] if bean.search else bean.labels(()))[:1])

    def scrape_interval(_bean: MBean, _labels: Labels) -> ScrapeInterval:
        # Read all metrics at once, as if each were due on every tick.
        return ScrapeInterval.TICK

    # Operations of other MBeans are optional.
    beans = [bean for bean in BEANS if not bean.called]
    requests = mbean_requests(beans, {bean.family: first(bean) for bean in beans}, scrape_interval)
    answers = jolokia.post([request.body for request in requests], TIMEOUT_S)
    return [AnsweredRequest(request, answer) for request, answer in zip(requests, answers, strict=True)]


def _refusals(case: ExaminedNode, answered: Sequence[AnsweredRequest]) -> list[Finding]:
    operations = [item for item in answered if item.request.is_operation]
    reads = [item for item in answered if not item.request.is_operation]
    if all(item.is_refused for item in reads):
        return [command(case, "read")]
    findings = []
    if operations and all(item.is_refused for item in operations):
        where = _where(case)
        findings.append(
            warning(
                SUBJECT,
                "the policy denies the values() operation (exec)",
                "percentiles come from Cassandra's histograms, which decay over minutes; they are marked ~",
                f"add {OPERATION} inside <restrict> {where}, and restart the node",
            )
        )
        operations = []
    if denied := [item for item in reads + operations if item.is_refused]:
        findings.append(_denied(case, denied, answered))
    return findings


def _denied(case: ExaminedNode, denied: Sequence[AnsweredRequest], answered: Sequence[AnsweredRequest]) -> Finding:
    kinds = dict.fromkeys(_kind(item.name) for item in denied)
    metrics = dict.fromkeys(bean.metric.name for item in denied for bean, _ in item.request.parts)
    with_values = {_kind(item.name) for item in answered if item.request.is_operation}
    # Without mode="read", clients could also write the attributes.
    allowed = (
        f'<mbean><name>{kind}</name><attribute mode="read">*</attribute>'
        f"{'<operation>values()</operation>' if kind in with_values else ''}</mbean>"
        for kind in kinds
    )
    return warning(
        SUBJECT,
        f"the policy denies {len(denied)} of {len(answered)} requests: {', '.join(kinds)}",
        f"no data for {names_text(list(metrics), 3)} ('casstat metrics' describes them)",
        # Jolokia does not report which of the two fixes applies. If <commands> allows `read`, Jolokia ignores <allow>,
        # so only <deny> can be the cause.
        f"remove {', '.join(kinds)} from <deny> {_where(case)}, and restart the node",
        f"or: add <allow>{''.join(allowed)}</allow> inside <restrict> {_where(case)}, and restart the node",
    )


def _hidden(
    case: ExaminedNode, jolokia: Jolokia, searched: Iterable[MBean], known: Mapping[str, Sequence[Labels]]
) -> list[Finding]:
    """Return a warning about MBeans that exist but are missing from search results."""
    empty = [(bean, witness) for bean in searched if not known[bean.search_key] for witness in WITNESSES]
    fitting = [
        (bean, {**_first(bean), **witness}) for bean, witness in empty if witness.keys() <= set(bean.placeholders)
    ]
    names = {bean.name.format_map(labels): bean for bean, labels in fitting if set(bean.placeholders) <= labels.keys()}
    if not names:
        return []
    requests = [json.dumps({"type": "read", "mbean": name, "attribute": _attribute(names[name])}) for name in names]
    answers = jolokia.post(requests, TIMEOUT_S)
    hidden = [name for name, answer in zip(names, answers, strict=True) if answer.get("status") == 200]
    if not hidden:
        return []
    kinds = dict.fromkeys(map(_kind, hidden))
    return [
        warning(
            SUBJECT,
            f"the policy hides existing MBeans from searches: {', '.join(kinds)}",
            "their columns show '-'",
            f"remove {', '.join(kinds)} from <filter> {_where(case)}, and restart the node",
        )
    ]


def command(case: ExaminedNode, name: str) -> Finding:
    """Return the finding that the policy denies a Jolokia command."""
    return problem(
        SUBJECT,
        f"the policy denies the {name} command",
        "no metrics through Jolokia",
        f"add <command>{name}</command> inside <commands> {_where(case)}, and restart the node",
    )


def restriction(case: ExaminedNode, jolokia: Jolokia) -> list[Finding]:
    """Return a warning if Jolokia lets its clients change the node. Raises JolokiaError.

    Jolokia checks its policy before it looks for an operation or attribute, so these requests change nothing.
    """
    answers = jolokia.post([json.dumps(request) for request in CHANGES], TIMEOUT_S)
    if all(answer.get("status") == FORBIDDEN for answer in answers):
        return [ok(POLICY_SUBJECT, "Jolokia's policy denies the changes that were tried")]
    who = "whoever has its password" if jolokia.has_credentials else "every user of this host"
    return [
        warning(
            POLICY_SUBJECT,
            f"{jolokia.url} is not restricted by a policy",
            f"{who} can change the node and run code in it",
            *_restricted(case),
        )
    ]


def _restricted(case: ExaminedNode) -> tuple[str, ...]:
    """Return the fixes that give the node's Jolokia the read-only policy."""
    words = case.command(case.chosen.pid) if case.chosen else []
    agent = next((word for word in words if AGENT.fullmatch(word)), "")
    if not agent:
        return _attached_again(case)
    located = _located(case)
    path = Path(located) if located else policy_path(case)
    # The policy that the agent has is replaced.
    print_it = print_policy(case, path)
    if located:
        return (print_it, "then: restart the node")
    option = f"{agent}{',' if '=' in agent else '='}{policy_option(path)}"
    return (print_it, f"then: replace {agent} by {option} in {case.configuration(ENV)}, and restart the node")


def _attached_again(case: ExaminedNode) -> tuple[str, ...]:
    """Return the fixes for an agent that is not in the node's command line."""
    node = case.chosen
    jar = find_jar(case, node) if node else None
    if node is None or jar is None:
        option = policy_option(CONFIGURATION / POLICY_FILE.name)
        return (
            print_policy(case, CONFIGURATION / POLICY_FILE.name),
            f"then: add {option} to the options of Jolokia's agent, and restart the node",
        )
    detach = case.advice.command("attach", "--detach", "--jar", jar, str(node.pid))
    return (case.as_owner(node.pid, detach), f"then: {attach(case, node)[0]}")


def _where(case: ExaminedNode) -> str:
    """Return "in FILE", where FILE is the path of the policy, or only its usual name if the path is unknown."""
    return f"in {_located(case) or POLICY}"


def _located(case: ExaminedNode) -> str:
    """Return the path of the policy according to the node's command line; "" if it is unknown."""
    words = case.command(case.chosen.pid) if case.chosen else []
    return next((match[1] for word in words if (match := _LOCATION.match(word))), "")


def _names(answer: Mapping[str, Any]) -> list[str]:
    value = answer.get("value")
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _first(bean: MBean) -> Labels:
    return {label: values[0] for label, values in bean.only.items()}


def _attribute(bean: MBean) -> str:
    return "Count" if bean.attribute == "values()" else bean.attribute.partition(".")[0]


def _kind(name: str) -> str:
    """Return a pattern that matches all MBeans of the same type as `name`."""
    domain, _, rest = name.partition(":")
    kind = next(part for part in rest.split(",") if part.startswith("type="))
    return f"{domain}:{kind},*" if "," in rest else f"{domain}:{kind}"

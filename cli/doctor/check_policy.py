"""What Jolokia's policy lets casstat ask: reading, searching, the operation values(), and every MBean it wants."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cli.doctor.examined_node import ExaminedNode
from cli.doctor.finding import Finding, problem, warning
from collector.catalogue import BEANS
from collector.jolokia.client import Jolokia
from collector.jolokia.mbean import METRICS, Labels, MBean, MBeanRequest, mbean_requests
from collector.model.metric import ScrapeInterval

SUBJECT = "jolokia"
TIMEOUT_S = 10.0
FORBIDDEN = 403
POLICY = "jolokia-access.xml"
# Of each kind of name that is searched for, one that every node has.
WITNESSES = (
    # Pools come into being with their first task.
    {"path": "request", "pool": "ReadStage"},
    {"path": "internal", "pool": "GossipStage"},
    {"path": "internal", "pool": "CompactionExecutor"},
    {"keyspace": "system", "table": "local"},
    {"keyspace": "system"},
    {"cache": "KeyCache"},
)
OPERATION = f"<allow><mbean><name>{METRICS}*</name><operation>values()</operation></mbean></allow>"

_LOCATION = re.compile(r"-javaagent:.*policyLocation=(?:file:(?://)?)?(/[^,]*)")


@dataclass(frozen=True)
class Asked:
    """A question, and what Jolokia answered."""

    question: MBeanRequest
    answer: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The MBean's."""
        return str(json.loads(self.question.request)["mbean"])

    @property
    def refused(self) -> bool:
        """Whether the policy refuses it, or some of its attributes."""
        value = self.answer.get("value")
        parts = value.values() if isinstance(value, dict) else [value]
        forbidden = (isinstance(part, str) and "java.lang.SecurityException" in part for part in parts)
        return self.answer.get("status") == FORBIDDEN or any(forbidden)


def examine(case: ExaminedNode, jolokia: Jolokia) -> list[Finding]:
    """Ask once for what casstat asks for, and return what is refused. Raises SourceError."""
    beans = {bean.place: bean for bean in reversed(BEANS)}
    searched = [bean for bean in beans.values() if bean.search]
    patterns = [json.dumps({"type": "search", "mbean": bean.search}) for bean in searched]
    found = jolokia.ask(patterns, TIMEOUT_S)
    if any(answer.get("status") == FORBIDDEN for answer in found):
        return [command(case, "search")]
    known = {bean.place: bean.labels(_names(answer)) for bean, answer in zip(searched, found, strict=True)}
    asked = _ask(jolokia, known)
    findings = _refusals(case, asked)
    return findings + _hidden(case, jolokia, searched, known)


def _ask(jolokia: Jolokia, known: Mapping[str, Sequence[Labels]]) -> list[Asked]:
    """Ask for every bean of the catalogue, of one pool, one table and so on."""

    def first(bean: MBean) -> list[Labels]:
        return list((known[bean.place] if bean.search else bean.labels(()))[:1])

    def scrape_interval(bean: MBean, _labels: Labels) -> ScrapeInterval | None:
        # All in one go, but what touches the node's disk.
        return None if bean.metric.scrape_interval is ScrapeInterval.HOURLY else ScrapeInterval.TICK

    wanted = mbean_requests(BEANS, {bean.family: first(bean) for bean in BEANS}, scrape_interval)
    answers = jolokia.ask([question.request for question in wanted], TIMEOUT_S)
    return [Asked(question, answer) for question, answer in zip(wanted, answers, strict=True)]


def _refusals(case: ExaminedNode, asked: Sequence[Asked]) -> list[Finding]:
    executed = [each for each in asked if each.question.is_operation]
    read = [each for each in asked if not each.question.is_operation]
    if all(each.refused for each in read):
        return [command(case, "read")]
    findings = []
    if executed and all(each.refused for each in executed):
        where = _where(case)
        findings.append(
            warning(
                SUBJECT,
                "its policy refuses the operation values() (exec)",
                "percentiles are Cassandra's own, which decay over minutes and are marked ~",
                f"{where}, inside <restrict>, and restart the node: {OPERATION}",
                f"or: {where}, inside <commands>, and restart the node: <command>exec</command>",
            )
        )
        executed = []
    if denied := [each for each in read + executed if each.refused]:
        findings.append(_denied(case, denied, len(asked)))
    return findings


def _denied(case: ExaminedNode, denied: Sequence[Asked], of: int) -> Finding:
    kinds = dict.fromkeys(_kind(each.name) for each in denied)
    metrics = dict.fromkeys(bean.metric.name for each in denied for bean, _ in each.question.parts)
    allowed = (
        f"<mbean><name>{kind}</name><attribute>*</attribute><operation>values()</operation></mbean>" for kind in kinds
    )
    return warning(
        SUBJECT,
        f"its policy refuses {len(denied)} of {of} requests: {', '.join(kinds)}",
        f"'-' for {_some(list(metrics))} ('casstat metrics' explains them)",
        # Jolokia does not say which of the two it is; where <commands> has `read`, <allow> is not looked at.
        f"{_where(case)}, take out of <deny>, and restart the node: {', '.join(kinds)}",
        f"or: {_where(case)}, inside <restrict>, and restart the node: <allow>{''.join(allowed)}</allow>",
    )


def _hidden(
    case: ExaminedNode, jolokia: Jolokia, searched: Iterable[MBean], known: Mapping[str, Sequence[Labels]]
) -> list[Finding]:
    """Return what is not found though it is there."""
    empty = [(bean, witness) for bean in searched if not known[bean.place] for witness in WITNESSES]
    fitting = [(bean, {**_first(bean), **witness}) for bean, witness in empty if witness.keys() <= set(bean.holes)]
    names = {bean.name.format_map(labels): bean for bean, labels in fitting if set(bean.holes) <= labels.keys()}
    if not names:
        return []
    requests = [json.dumps({"type": "read", "mbean": name, "attribute": _attribute(names[name])}) for name in names]
    answers = jolokia.ask(requests, TIMEOUT_S)
    hidden = [name for name, answer in zip(names, answers, strict=True) if answer.get("status") == 200]
    if not hidden:
        return []
    kinds = dict.fromkeys(map(_kind, hidden))
    return [
        warning(
            SUBJECT,
            f"its policy hides from searches what is there: {', '.join(kinds)}",
            "the columns that are made of it show '-'",
            f"{_where(case)}, take out of <filter>, and restart the node: {', '.join(kinds)}",
        )
    ]


def command(case: ExaminedNode, name: str) -> Finding:
    """Return that the policy refuses one of Jolokia's commands altogether."""
    return problem(
        SUBJECT,
        f"its policy does not allow to {name}",
        "nothing is read through it",
        f"{_where(case)}, inside <commands>, and restart the node: <command>{name}</command>",
    )


def _where(case: ExaminedNode) -> str:
    """Return which file holds the policy."""
    words = case.command(case.chosen.pid) if case.chosen else []
    return f"in {next((match[1] for word in words if (match := _LOCATION.match(word))), POLICY)}"


def _names(answer: Mapping[str, Any]) -> list[str]:
    value = answer.get("value")
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _first(bean: MBean) -> Labels:
    return {label: values[0] for label, values in bean.only.items()}


def _attribute(bean: MBean) -> str:
    return "Count" if bean.attribute == "values()" else bean.attribute.partition(".")[0]


def _kind(name: str) -> str:
    """Return a pattern for all MBeans of a name's type."""
    domain, _, rest = name.partition(":")
    kind = next(part for part in rest.split(",") if part.startswith("type="))
    return f"{domain}:{kind},*" if "," in rest else f"{domain}:{kind}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more

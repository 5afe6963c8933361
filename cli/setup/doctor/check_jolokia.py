"""Checks the node's Jolokia agent: whether it responds, the process it runs in, its latency and its policy."""

import ipaddress
import json
import re
import shlex
import socket
import statistics
import time
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from cli.line.node_selection import peer_check
from cli.parameters.access_options import connect
from cli.setup.doctor import check_policy, examined_node
from cli.setup.doctor.check_jolokia_agent import NODELAY, at_start, attach
from cli.setup.doctor.check_policy import POLICY
from cli.setup.doctor.examined_node import EXAMPLE_URL, ExaminedNode, Finding, ok, problem, warning
from collector.file_access import SecretError, read_password
from collector.http.access import Reason
from collector.model.mbean import METRICS, properties
from collector.node.host.cassandra_processes import LocalNode, NodeFacts, local_pid
from collector.node.host.discovery import is_this_machine
from collector.node.jolokia.client import ORIGIN, Jolokia, JolokiaError
from collector.node.jolokia.mbean_source import RELEASE, read_facts
from collector.node.metrics.requests import SCOPES
from collector.printable import one_line

SUBJECT = "jolokia"
TIMEOUT_S = 5.0
# Slower responses suggest that TCP_NODELAY is off: each then waits for a delayed acknowledgement, 40 ms on Linux.
FLOOR_S = 0.030
TIMES = 9
TINY = json.dumps({"type": "version"})
PROPERTY = json.dumps(
    {
        "type": "read",
        "mbean": "java.lang:type=Runtime",
        "attribute": "SystemProperties",
        "path": "sun.net.httpserver.nodelay",
    }
)
NOT_FOUND = 404
REQUESTS = METRICS + "type=ClientRequest,scope=*,name=Latency"
_CLIENT = re.compile(r"No access from client (\S+) allowed")
_CREDENTIALS = {"jolokia_user": "USER", "jolokia_password_file": "FILE"}
_CLIENT_CERTIFICATE = {"jolokia_cert": "FILE", "jolokia_key": "FILE"}
_OTHER_SCHEME = {"jolokia": "{url}"}
# Options to change, keyed by reason. {url} is the agent's URL with https instead of http, or the reverse; {port} is the
# agent's port.
_CHANGES = {
    Reason.CREDENTIALS_REQUIRED: _CREDENTIALS,
    Reason.CREDENTIALS_REJECTED: _CREDENTIALS,
    Reason.TARGET_CREDENTIALS: {"jolokia_target_user": "USER", "jolokia_target_password_file": "FILE"},
    Reason.UNKNOWN_AUTHORITY: {"jolokia_ca": "FILE"},
    Reason.CLIENT_CERTIFICATE_REQUIRED: _CLIENT_CERTIFICATE,
    Reason.CLIENT_CERTIFICATE_REJECTED: _CLIENT_CERTIFICATE,
    Reason.TLS_REQUIRED: _OTHER_SCHEME,
    Reason.TLS_SUSPECTED: _OTHER_SCHEME,
    Reason.PLAIN_HTTP: _OTHER_SCHEME,
    Reason.PLAIN_HTTP_SUSPECTED: _OTHER_SCHEME,
    Reason.WRONG_HOST: {"jolokia": "https://NAME:{port}/jolokia"},
}


@dataclass(frozen=True)
class Transport:
    """The findings about one transport to the node.

    facts    the node's facts as reported by the transport, or None if the transport does not work.
    release  Cassandra's version, or "" if unknown.
    """

    findings: tuple[Finding, ...]
    facts: NodeFacts | None = None
    release: str = ""


def examine(case: ExaminedNode) -> Transport:
    """Check the node's Jolokia agent. Raises click.UsageError for contradictory options."""
    if case.settings.source == "nodetool":
        return Transport((ok(SUBJECT, "not checked: --source nodetool"),))
    if not case.url and case.chosen:
        summary = f"process {case.chosen.pid} was started without a Jolokia agent"
        return Transport((problem(SUBJECT, summary, "", *attach(case, case.chosen)),))
    if not case.url:
        return Transport((problem(SUBJECT, "no node with a Jolokia agent was found"),))
    if unusable := _passwords(case):
        return Transport(unusable)
    check_peer = peer_check(case.settings, case.chosen, case.users)
    with closing(connect(case.url, case.settings.jolokia, case.environ, check_peer)) as jolokia:
        try:
            return _check(case, jolokia)
        except JolokiaError as error:
            return Transport((refusal(case, jolokia, error),))


def _passwords(case: ExaminedNode) -> tuple[Finding, ...]:
    settings = case.settings.jolokia
    findings = []
    for path in (settings.jolokia_password_file, settings.jolokia_target_password_file):
        try:
            if path is not None:
                read_password(path)
        except SecretError as error:
            findings.append(problem(SUBJECT, *_password_problem(path, str(error))))
    return tuple(findings)


def _password_problem(path: Path | None, error: str) -> tuple[str, ...]:
    """Return the summary for an unusable password file, followed by its impact and fix if a fix is known."""
    command = f"chmod 600 {path}"
    summary, hint, _ = error.partition(f" (hint: run '{command}')")
    return (summary, "casstat does not use it", command) if hint else (error,)


def _check(case: ExaminedNode, jolokia: Jolokia) -> Transport:
    facts = read_facts(jolokia, TIMEOUT_S)
    (release,) = jolokia.post([RELEASE], TIMEOUT_S)
    pid = local_pid(facts, case.here, case.others if case.settings.jolokia.jolokia else ())
    if release.get("status") == check_policy.FORBIDDEN and not facts.started_ms:
        return Transport((check_policy.command(case, "read"),))
    if release.get("status") == NOT_FOUND:
        return Transport((_no_cassandra(case, jolokia, facts, pid),))
    if case.chosen and case.settings.jmx_port and pid != case.chosen.pid:
        return Transport((_other_node(case, jolokia, case.chosen, pid),))
    findings = check_policy.examine(case, jolokia)
    if examined_node.has_problem(findings):
        return Transport(tuple(findings))
    version = one_line(release.get("value", ""))
    latencies_s = [_latency_s(jolokia) for _ in range(TIMES)]
    findings += check_policy.restriction(case, jolokia)
    findings += unknown_operations(jolokia)
    findings.insert(0, _latency(case, jolokia, statistics.median(latencies_s)))
    return Transport(tuple(findings), replace(facts, pid=pid, is_local=pid is not None), version)


def unknown_operations(jolokia: Jolokia) -> list[Finding]:
    """Return a finding about operations that the node has counted but casstat does not read. Raises JolokiaError."""
    (found,) = jolokia.post([json.dumps({"type": "search", "mbean": REQUESTS})], TIMEOUT_S)
    names = found.get("value")
    unknown = {
        name: scope
        for name in (names if isinstance(names, list) else ())
        # The scopes of consistency levels, such as Read-ONE, are parts of others.
        if isinstance(name, str) and "-" not in (scope := properties(name).get("scope", ""))
        if scope not in SCOPES["operation"]
    }
    bodies = [json.dumps({"type": "read", "mbean": name, "attribute": "Count"}) for name in unknown]
    answers = jolokia.post(bodies, TIMEOUT_S) if bodies else []
    counted = [one_line(scope) for scope, answer in zip(unknown.values(), answers, strict=True) if answer.get("value")]
    if not counted:
        return []
    summary = f"casstat does not know these operations of the node: {', '.join(counted)}"
    return [warning(SUBJECT, summary, "they are in no column and in no total")]


def _no_cassandra(case: ExaminedNode, jolokia: Jolokia, facts: NodeFacts, pid: int | None) -> Finding:
    if pid is not None:
        summary = f"{jolokia.url} belongs to process {pid}, a Cassandra node that is still starting"
        return problem(SUBJECT, summary, "its MBeans do not exist yet", case.advice.command("doctor"))
    summary = f"{jolokia.url} belongs to a program other than Cassandra ({one_line(facts.jvm) or 'unnamed'})"
    return problem(SUBJECT, summary, "", *_jolokia_of(case, case.chosen or next(iter(case.here), None)))


def _other_node(case: ExaminedNode, jolokia: Jolokia, chosen: LocalNode, pid: int | None) -> Finding:
    selected = f"process {chosen.pid}, which has JMX port {chosen.jmx_port}"
    impact = "the columns would mix two nodes"
    other = next((node for node in case.here if node.pid == pid), None)
    if other is None:
        summary = f"{jolokia.url} belongs to a node on another host, not {selected}"
        return problem(SUBJECT, summary, impact, *_jolokia_of(case, chosen))
    summary = f"{jolokia.url} belongs to process {pid}, not {selected}"
    fixes = _jolokia_of(case, chosen)
    if other.jmx_port:
        fixes = (*fixes, f"or: {case.advice.line(jmx_port=str(other.jmx_port))}")
    return problem(SUBJECT, summary, impact, *fixes)


def _jolokia_of(case: ExaminedNode, node: LocalNode | None) -> tuple[str, ...]:
    """Return the fixes that make casstat use this node's Jolokia agent."""
    if node is None:
        return (case.advice.line(jolokia=EXAMPLE_URL),)
    return (case.advice.line(jolokia=node.url),) if node.url else attach(case, node)


def _latency_s(jolokia: Jolokia) -> float:
    began_s = time.monotonic()
    jolokia.post([TINY], TIMEOUT_S)
    return time.monotonic() - began_s


def _latency(case: ExaminedNode, jolokia: Jolokia, median_s: float) -> Finding:
    summary = f"{jolokia.url} responds in {median_s * 1000:.1f} ms"
    if median_s - _round_trip_s(jolokia) < FLOOR_S:
        return ok(SUBJECT, summary)
    (answer,) = jolokia.post([PROPERTY], TIMEOUT_S)
    if answer.get("value") == "true":
        return warning(SUBJECT, summary, "the node or this host is busy: rows may be late")
    summary = f"{jolokia.url} takes {median_s * 1000:.0f} ms even for the smallest response"
    impact = f"its JVM runs without {NODELAY}: with a short interval, ticks are missed"
    return warning(SUBJECT, summary, impact, at_start(case, NODELAY))


def _round_trip_s(jolokia: Jolokia) -> float:
    """Return the network round-trip time, which does not count as Jolokia's latency, or 0 if connecting fails."""
    began_s = time.monotonic()
    try:
        socket.create_connection((jolokia.host, jolokia.port), TIMEOUT_S).close()
    except OSError:
        return 0.0
    return time.monotonic() - began_s


def refusal(case: ExaminedNode, jolokia: Jolokia, error: JolokiaError) -> Finding:
    """Return the finding for a Jolokia that gives no usable response, with fixes that depend on the reason."""
    return problem(SUBJECT, str(error), "", *_fixes(case, jolokia, error))


def _fixes(case: ExaminedNode, jolokia: Jolokia, error: JolokiaError) -> tuple[str, ...]:
    if match := _CLIENT.search(str(error)):
        return (f"add <host>{match[1]}</host> inside <remote> in {POLICY}, and restart the node",)
    if f"Origin {ORIGIN} is not allowed" in str(error):
        return (f"add <allow-origin>{ORIGIN}</allow-origin> inside <cors> in {POLICY}, and restart the node",)
    if error.reason in (Reason.NOT_FOUND, Reason.UNEXPECTED_RESPONSE):
        # The port probably belongs to a server other than Jolokia.
        return (
            case.advice.line(jolokia=f"http://{_in_url(jolokia.host)}:PORT/jolokia"),
            *(fix if fix.startswith(("or: ", "then: ")) else f"or: {fix}" for fix in _start(case, jolokia)),
        )
    if error.reason is Reason.UNTRUSTED:
        # Not a complete command: following it for an imitation would reveal the password.
        lines = (case.advice.line(jolokia=jolokia.url), case.advice.line(trusted_user="USER"))
        return examined_node.alternatives(f"if that user runs your node: {line}" for line in lines)
    if error.reason in _CHANGES:
        changes = {option: _filled(value, jolokia) for option, value in _CHANGES[error.reason].items()}
        return (case.advice.line(**changes),)
    if error.reason is Reason.CONNECTION_REFUSED:
        return _start(case, jolokia)
    # No option helps against a timeout. For other failures, such as an unreachable host, the URL may be wrong.
    return () if error.reason is Reason.TIMED_OUT else (case.advice.line(jolokia=EXAMPLE_URL),)


def _filled(value: str, jolokia: Jolokia) -> str:
    parts = urlsplit(jolokia.url)
    other_url = parts._replace(scheme="http" if parts.scheme == "https" else "https").geturl()
    return value.format(url=other_url, port=jolokia.port)


def _start(case: ExaminedNode, jolokia: Jolokia) -> tuple[str, ...]:
    """Return the fixes that load Jolokia into the node, or commands that use a Jolokia agent that is running."""
    if not is_this_machine(jolokia.host):
        listen = f"{_in_url(jolokia.host) if _is_ip_address(jolokia.host) else 'ADDRESS'}:{jolokia.port}"
        words = ("--jar", "JAR", "--listen", listen, "--user", "USER", "--password-file", "FILE")
        return (f"on {jolokia.host}: {shlex.join(['casstat', 'attach', *words])}",)
    node = case.chosen or (case.here[0] if len(case.here) == 1 else None)
    if node is not None:
        return attach(case, node)
    return examined_node.alternatives(case.advice.line(jolokia=node.url) for node in case.here if node.url)


def _in_url(host: str) -> str:
    """Return a host as it appears in a URL: an IPv6 address is in brackets."""
    return f"[{host}]" if ":" in host else host


def _is_ip_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True

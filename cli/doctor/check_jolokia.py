"""The node's Jolokia: whether it answers, for which process, how quickly, and what it lets casstat ask."""

import json
import socket
import statistics
import time
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from cli.doctor import check_policy, refusals
from cli.doctor.check_jolokia_agent import NODELAY, at_start, attach
from cli.doctor.examined_node import ExaminedNode
from cli.doctor.finding import Finding, failed, ok, problem, warning
from cli.parameters.jolokia_options import connect
from collector.cassandra.storage import SERVICE
from collector.host.cassandra_processes import LocalNode, NodeFacts, local_pid
from collector.jolokia.client import Jolokia
from collector.jolokia.node_facts import ask_facts
from collector.model.snapshot import SourceError
from collector.printable import one_line
from collector.secrets import SecretError, read_password

SUBJECT = "jolokia"
TIMEOUT_S = 5.0
# Without the option every answer waits for the other side's delayed acknowledgement, 40 ms on Linux.
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
RELEASE = json.dumps({"type": "read", "mbean": SERVICE, "attribute": "ReleaseVersion"})
NOT_FOUND = 404


@dataclass(frozen=True)
class JolokiaTransport:
    """What there is to say of one way to the node; `facts` are what the node says through it, None if it is no way.

    release  Cassandra's version.
    """

    findings: tuple[Finding, ...]
    facts: NodeFacts | None = None
    release: str = ""


def examine(case: ExaminedNode) -> JolokiaTransport:
    """Ask Jolokia. Raises click.UsageError for options that cannot be meant."""
    if case.settings.source == "nodetool":
        return JolokiaTransport((ok(SUBJECT, "not asked: --source nodetool"),))
    if not case.url and case.chosen:
        what = f"process {case.chosen.pid} was started without a Jolokia agent"
        return JolokiaTransport((problem(SUBJECT, what, "", *attach(case, case.chosen)),))
    if not case.url:
        return JolokiaTransport((problem(SUBJECT, "no node is known whose Jolokia could be asked"),))
    if unusable := _passwords(case):
        return JolokiaTransport(unusable)
    with closing(connect(case.url, case.settings.jolokia, case.environ)) as jolokia:
        try:
            return _asked(case, jolokia)
        except SourceError as error:
            return JolokiaTransport((refusals.finding(case, jolokia, str(error)),))


def _passwords(case: ExaminedNode) -> tuple[Finding, ...]:
    settings = case.settings.jolokia
    findings = []
    for path in (settings.jolokia_password_file, settings.jolokia_target_password_file):
        try:
            if path is not None:
                read_password(path)
        except SecretError as error:
            findings.append(problem(SUBJECT, *_told(path, str(error))))
    return tuple(findings)


def _told(path: Path | None, text: str) -> tuple[str, ...]:
    said, command, _ = text.partition(f": chmod 600 {path}")
    return (said, "casstat takes no password from it", f"chmod 600 {path}") if command else (text,)


def _asked(case: ExaminedNode, jolokia: Jolokia) -> JolokiaTransport:
    facts = ask_facts(jolokia, TIMEOUT_S)
    (release,) = jolokia.ask([RELEASE], TIMEOUT_S)
    pid = local_pid(facts, case.here)
    if release.get("status") == check_policy.FORBIDDEN and not facts.started_ms:
        return JolokiaTransport((check_policy.command(case, "read"),))
    if release.get("status") == NOT_FOUND:
        return JolokiaTransport((_no_cassandra(case, jolokia, facts, pid),))
    if case.chosen and case.settings.jmx_port and pid != case.chosen.pid:
        return JolokiaTransport((_other_node(case, jolokia, case.chosen, pid),))
    findings = check_policy.examine(case, jolokia)
    if failed(findings):
        return JolokiaTransport(tuple(findings))
    version = one_line(release.get("value", ""))
    seconds = [_seconds(jolokia) for _ in range(TIMES)]
    findings.insert(0, _pace(case, jolokia, statistics.median(seconds)))
    return JolokiaTransport(tuple(findings), replace(facts, pid=pid, here=pid is not None), version)


def _no_cassandra(case: ExaminedNode, jolokia: Jolokia, facts: NodeFacts, pid: int | None) -> Finding:
    if pid is not None:
        what = f"{jolokia.url} answers for process {pid}, a Cassandra that is starting: ask again"
        return problem(SUBJECT, what, "it knows nothing of itself yet", case.advice.command("doctor"))
    what = f"{jolokia.url} answers for another program than Cassandra, {one_line(facts.jvm) or 'without a name'}"
    return problem(SUBJECT, what, "", *_right_one(case, case.chosen or next(iter(case.here), None)))


def _other_node(case: ExaminedNode, jolokia: Jolokia, chosen: LocalNode, pid: int | None) -> Finding:
    meant = f"process {chosen.pid}, which has JMX port {chosen.jmx_port}"
    other = next((node for node in case.here if node.pid == pid), None)
    if other is None:
        what = f"{jolokia.url} answers for a node that does not run here, not for {meant}"
        return problem(SUBJECT, what, "columns would be of two nodes", *_right_one(case, chosen))
    what = f"{jolokia.url} answers for process {pid}, not for {meant}"
    mend = _right_one(case, chosen)
    if other.jmx_port:
        mend = (*mend, f"or: {case.advice.line(jmx_port=str(other.jmx_port))}")
    return problem(SUBJECT, what, "columns would be of two nodes", *mend)


def _right_one(case: ExaminedNode, node: LocalNode | None) -> tuple[str, ...]:
    """Return how to ask that node."""
    if node is None:
        return (case.advice.line(jolokia="http://NODE:8778/jolokia"),)
    return (case.advice.line(jolokia=node.url),) if node.url else attach(case, node)


def _seconds(jolokia: Jolokia) -> float:
    began_s = time.monotonic()
    jolokia.ask([TINY], TIMEOUT_S)
    return time.monotonic() - began_s


def _pace(case: ExaminedNode, jolokia: Jolokia, median_s: float) -> Finding:
    what = f"{jolokia.url} answers within {median_s * 1000:.1f} ms"
    if median_s - _round_trip_s(jolokia) < FLOOR_S:
        return ok(SUBJECT, what)
    (answer,) = jolokia.ask([PROPERTY], TIMEOUT_S)
    if answer.get("value") == "true":
        return warning(SUBJECT, what, "the node or this machine has much to do: rows may come late")
    what = f"{jolokia.url} takes {median_s * 1000:.0f} ms for the smallest answer"
    why = f"its JVM runs without {NODELAY}: short intervals cannot be kept"
    return warning(SUBJECT, what, why, at_start(case, NODELAY))


def _round_trip_s(jolokia: Jolokia) -> float:
    """Return how long the way to it takes: to a node that is far away nothing can be quick."""
    began_s = time.monotonic()
    try:
        socket.create_connection((jolokia.host, jolokia.port), TIMEOUT_S).close()
    except OSError:
        return 0.0
    return time.monotonic() - began_s

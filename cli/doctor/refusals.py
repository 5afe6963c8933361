"""Why a Jolokia did not answer as it should, by what the error says, and what to type about it."""

import re
import shlex
from urllib.parse import urlsplit

from cli.doctor.check_jolokia_agent import attach
from cli.doctor.check_policy import POLICY, SUBJECT
from cli.doctor.examined_node import ExaminedNode
from cli.doctor.finding import Finding, alternatives, problem
from collector.host.discovery import is_this_machine
from collector.jolokia.client import Jolokia

_CLIENT = re.compile(r"No access from client (\S+) allowed")


def finding(case: ExaminedNode, jolokia: Jolokia, error: str) -> Finding:
    """Return what an error of Jolokia's means; its message ends in advice that fits every command of casstat's."""
    return problem(SUBJECT, error, "", *_mend(case, jolokia, error))


def _mend(case: ExaminedNode, jolokia: Jolokia, error: str) -> tuple[str, ...]:
    if match := _CLIENT.search(error):
        return (f"in {POLICY}, inside <remote>, and restart the node: <host>{match[1]}</host>",)
    if "HTTP 404" in error or "is this Jolokia?" in error:
        # What listens there is something else.
        return (case.advice.line(jolokia=f"http://{jolokia.host}:PORT/jolokia"), *_or(_begin(case, jolokia)))
    for words, changes in _CHANGES.items():
        if words in error:
            return (case.advice.line(**{name: _filled(value, jolokia) for name, value in changes.items()}),)
    if "connection refused" in error.lower():
        return _begin(case, jolokia)
    # What hangs is no matter of options; what cannot be reached may be another.
    return () if "in time" in error else (case.advice.line(jolokia="http://NODE:8778/jolokia"),)


# What an error says, and the options that help; {url} is this Jolokia's with the other scheme.
_CHANGES = {
    "HTTP 401": {"jolokia_user": "USER", "jolokia_password_file": "FILE"},
    "give --jolokia-target-user": {"jolokia_target_user": "USER", "jolokia_target_password_file": "FILE"},
    "with --jolokia-ca": {"jolokia_ca": "FILE"},
    "(--jolokia-cert": {"jolokia_cert": "FILE", "jolokia_key": "FILE"},
    "give an https:// URL": {"jolokia": "{url}"},
    "give an http:// URL": {"jolokia": "{url}"},
    "its certificate is not for": {"jolokia": "https://NAME:{port}/jolokia"},
}


def _filled(value: str, jolokia: Jolokia) -> str:
    parts = urlsplit(jolokia.url)
    other = parts._replace(scheme="http" if parts.scheme == "https" else "https").geturl()
    return value.format(url=other, port=jolokia.port)


def _begin(case: ExaminedNode, jolokia: Jolokia) -> tuple[str, ...]:
    """Return how to get a Jolokia to answer."""
    if not is_this_machine(jolokia.host):
        words = (
            "attach",
            "--jar",
            "JAR",
            "--listen",
            f"{jolokia.host}:{jolokia.port}",
            "--user",
            "USER",
            "--password-file",
            "FILE",
        )
        return (f"on {jolokia.host}: {shlex.join(['casstat', *words])}",)
    node = case.chosen or (case.here[0] if len(case.here) == 1 else None)
    if node is not None:
        return attach(case, node)
    return alternatives(case.advice.line(jolokia=each.url) for each in case.here if each.url)


def _or(lines: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(line if line.startswith(("or: ", "then: ")) else f"or: {line}" for line in lines)

"""Chooses fixes for a Jolokia agent that gives no usable response, depending on the reason for the error."""

import ipaddress
import re
import shlex
from urllib.parse import urlsplit

from cli.setup.doctor.check_jolokia_agent import attach
from cli.setup.doctor.check_policy import POLICY, SUBJECT
from cli.setup.doctor.examined_node import EXAMPLE_URL, ExaminedNode
from cli.setup.doctor.finding import Finding, alternatives, problem
from collector.http.access import Reason
from collector.node.host.discovery import is_this_machine
from collector.node.jolokia.client import ORIGIN, Jolokia, JolokiaError

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


def finding(case: ExaminedNode, jolokia: Jolokia, error: JolokiaError) -> Finding:
    """Return the finding for a Jolokia error, with its fixes."""
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
            *_as_alternatives(_start(case, jolokia)),
        )
    if error.reason is Reason.UNTRUSTED:
        # Not a complete command: following it for an imitation would reveal the password.
        lines = (case.advice.line(jolokia=jolokia.url), case.advice.line(trusted_user="USER"))
        return alternatives(f"if that user runs your node: {line}" for line in lines)
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
        words = (
            "attach",
            "--jar",
            "JAR",
            "--listen",
            f"{_in_url(jolokia.host) if _is_ip_address(jolokia.host) else 'ADDRESS'}:{jolokia.port}",
            "--user",
            "USER",
            "--password-file",
            "FILE",
        )
        return (f"on {jolokia.host}: {shlex.join(['casstat', *words])}",)
    node = case.chosen or (case.here[0] if len(case.here) == 1 else None)
    if node is not None:
        return attach(case, node)
    return alternatives(case.advice.line(jolokia=node.url) for node in case.here if node.url)


def _in_url(host: str) -> str:
    """Return a host as it appears in a URL: an IPv6 address is in brackets."""
    return f"[{host}]" if ":" in host else host


def _is_ip_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _as_alternatives(fixes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(fix if fix.startswith(("or: ", "then: ")) else f"or: {fix}" for fix in fixes)

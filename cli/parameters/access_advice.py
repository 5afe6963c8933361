"""Advice on access failures, phrased in terms of command-line options."""

from collections.abc import Mapping

from collector.http.failures import Hint, Reason

JOLOKIA, AGENT = "--jolokia-", "--agent-"

_HINTS = {
    Reason.CREDENTIALS_REQUIRED: "use {user} and {password}",
    Reason.CREDENTIALS_REJECTED: "check {user} and {password}",
    Reason.REDIRECTED: "use the final URL",
    Reason.TLS_REQUIRED: "use an https:// URL",
    Reason.TLS_SUSPECTED: "if the server speaks TLS, use an https:// URL",
    Reason.PLAIN_HTTP: "use an http:// URL",
    Reason.PLAIN_HTTP_SUSPECTED: "if the server does not speak TLS, use an http:// URL",
    Reason.UNKNOWN_AUTHORITY: "specify the CA certificate with {ca}",
    Reason.WRONG_HOST: "use a URL with a name or address from the certificate",
    Reason.CLIENT_CERTIFICATE_REQUIRED: "use {certificate} and {key}",
    Reason.CLIENT_CERTIFICATE_REJECTED: "check {certificate}",
    Reason.NOT_A_PROXY: "leave out {target}, or enable Jolokia's proxy mode",
    Reason.TARGET_CREDENTIALS: "use {target_user} and {target_password}",
    Reason.TARGET_FORBIDDEN: "allow the target with Jolokia's jsr160ProxyAllowedTargets setting",
    Reason.TARGET_UNREACHABLE: "check {target}",
    Reason.UNTRUSTED: "name the address with --jolokia, or its user with --trusted-user",
}
_AGENT_HINTS = {
    Reason.FORBIDDEN: "configure passwords for the agent, or start it with --allow-anonymous-reads",
}


def option_names(prefix: str) -> Mapping[str, str]:
    """Return the option that sets each field of `Access` and `JolokiaAccess`, such as "--jolokia-ca" for "ca"."""
    return {
        "user": f"{prefix}user",
        "password": f"{prefix}password-file",
        "ca": f"{prefix}ca",
        "certificate": f"{prefix}cert",
        "key": f"{prefix}key",
        "target": f"{prefix}target",
        "target_user": f"{prefix}target-user",
        "target_password": f"{prefix}target-password-file",
    }


def hint_for(prefix: str) -> Hint:
    """Return a function that maps the reason for a failure to a hint, in which option names begin with `prefix`."""
    names = option_names(prefix)
    hints = {**_HINTS, **_AGENT_HINTS} if prefix == AGENT else _HINTS
    return lambda reason: hints.get(reason, "").format_map(names)

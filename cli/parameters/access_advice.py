"""Advice for failed access, in the names of the command line's options."""

from collections.abc import Mapping

from collector.http.failures import Hint, Reason

JOLOKIA, AGENT = "--jolokia-", "--agent-"

_HINTS = {
    Reason.CREDENTIALS_REQUIRED: "give {user} and {password}",
    Reason.CREDENTIALS_REJECTED: "check {user} and {password}",
    Reason.REDIRECTED: "give the final URL",
    Reason.TLS_REQUIRED: "give an https:// URL",
    Reason.TLS_SUSPECTED: "if the server speaks TLS, give an https:// URL",
    Reason.PLAIN_HTTP: "give an http:// URL",
    Reason.PLAIN_HTTP_SUSPECTED: "if the server speaks no TLS, give an http:// URL",
    Reason.UNKNOWN_AUTHORITY: "give the authority's certificate with {ca}",
    Reason.WRONG_HOST: "give a URL with a name or address from the certificate",
    Reason.CLIENT_CERTIFICATE_REQUIRED: "give {certificate} and {key}",
    Reason.CLIENT_CERTIFICATE_REJECTED: "check {certificate}",
    Reason.NOT_A_PROXY: "leave out {target}, or enable Jolokia's proxy mode",
    Reason.TARGET_CREDENTIALS: "give {target_user} and {target_password}",
    Reason.TARGET_FORBIDDEN: "allow the target with Jolokia's setting jsr160ProxyAllowedTargets",
    Reason.TARGET_UNREACHABLE: "check {target}",
}


def option_names(prefix: str) -> Mapping[str, str]:
    """Return the options that set the fields of `Access` and `JolokiaAccess`, such as "--jolokia-ca" for "ca"."""
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
    """Return the advice that names options with this prefix."""
    names = option_names(prefix)
    return lambda reason: _HINTS.get(reason, "").format_map(names)

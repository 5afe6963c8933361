"""Permission without credentials: decides which requests may change the agent's state, and which may read data."""

from collections.abc import Mapping

from exporters.api.client_addresses import is_loopback

# The paths with the agent's data begin with this, except for two that reveal nothing about the node.
_API = "/api/"
_PUBLIC = ("/api/v1/openapi.json", "/api/v1/time")
_FORWARDED = (b"forwarded", b"x-forwarded-for", b"via")


def write_refusal(
    peer: str, headers: Mapping[bytes, bytes], *, requires_credentials: bool, has_credentials: bool, known_host: bool
) -> str:
    """Return the reason why a request may not change the agent's state; "" if it may.

    peer                  the client's address.
    requires_credentials  whether the configuration requires a password or a certificate.
    has_credentials       whether the request carries valid credentials.
    known_host            whether the request's Host header contains an IP address or a name of this agent.
    """
    site = headers.get(b"sec-fetch-site", b"none").lower()
    if b"origin" in headers or site not in (b"none", b"same-origin"):
        return "changes from web pages are not allowed"
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
        return "a write needs a Content-Type: application/json header (hint: use curl --json)"
    if requires_credentials:
        return "" if has_credentials else "a write needs credentials"
    if not _is_on_this_machine(peer, headers):
        return "a write from another machine or a proxy needs credentials (hint: configure them in web_config_file)"
    if not known_host:
        return "the Host header does not name this agent (hint: use localhost or 127.0.0.1)"
    return ""


def read_refusal(
    path: str, peer: str, headers: Mapping[bytes, bytes], *, has_credentials: bool, anonymous_reads: bool
) -> str:
    """Return the reason why a request may not read what is at a path; "" if it may.

    Anyone who can reach the agent may read its metrics and whether it is healthy; only programs on the same machine
    and clients with credentials may read samples, recordings and runs, unless `anonymous_reads` is set.
    """
    if has_credentials or anonymous_reads or path in _PUBLIC or not path.startswith(_API):
        return ""
    if _is_on_this_machine(peer, headers):
        return ""
    hint = "configure passwords in web_config_file, or set allow_anonymous_reads"
    return f"recordings, samples and runs need credentials if the client is another machine or a proxy (hint: {hint})"


def _is_on_this_machine(peer: str, headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a program on this machine sent a request, as far as its headers tell."""
    return is_loopback(peer) and not any(name in headers for name in _FORWARDED)

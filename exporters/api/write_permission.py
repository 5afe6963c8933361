"""Write permission: decides which requests may change the agent's state."""

from collections.abc import Mapping

from exporters.api.client_addresses import is_loopback

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
    if not is_loopback(peer) or any(name in headers for name in _FORWARDED):
        return "a write from another machine or a proxy needs credentials (hint: configure them in web_config_file)"
    if not known_host:
        return "the Host header does not name this agent (hint: use localhost or 127.0.0.1)"
    return ""

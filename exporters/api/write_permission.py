"""Who may change something: a rule over what is known of a request."""

from collections.abc import Mapping

from exporters.api.client_addresses import is_loopback

_FORWARDED = (b"forwarded", b"x-forwarded-for", b"via")


def refused_write(peer: str, headers: Mapping[bytes, bytes], *, asks: bool, shown: bool, known_host: bool) -> str:
    """Return why a request may change nothing; "" when it may.

    peer        the address that it comes from.
    asks        whether anybody must show who they are; `shown`, whether this one has.
    known_host  whether its Host header holds an address or name of this agent.
    """
    site = headers.get(b"sec-fetch-site", b"none").lower()
    if b"origin" in headers or site not in (b"none", b"same-origin"):
        return "a page in a browser may change nothing here"
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
        return "what changes something is sent with Content-Type: application/json (curl --json does so)"
    if asks:
        return "" if shown else "only who shows credentials may change something"
    if not is_loopback(peer) or any(name in headers for name in _FORWARDED):
        return "from other machines only who shows credentials may change something, and none are configured"
    if not known_host:
        return "the Host header holds no name of this agent: use localhost or 127.0.0.1"
    return ""

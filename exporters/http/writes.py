"""Who may change something: a rule over what is known of a request."""

from collections.abc import Mapping
from ipaddress import ip_address

_LOCAL_NAMES = ("localhost",)
_FORWARDED = (b"forwarded", b"x-forwarded-for", b"via")


def is_loopback(host: str) -> bool:
    """Return whether an address is this machine's own."""
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def refused_write(peer: str, headers: Mapping[bytes, bytes], *, asks: bool, shown: bool) -> str:
    """Return why a request may change nothing; "" when it may.

    peer    the address that it comes from.
    asks    whether anybody must show who they are; `shown`, whether this one has.
    """
    site = headers.get(b"sec-fetch-site", b"none").lower()
    if b"origin" in headers or site not in (b"none", b"same-origin"):
        return "a page in a browser may change nothing here"
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
        return "what changes something is sent with Content-Type: application/json"
    if asks:
        return "" if shown else "only who shows credentials may change something"
    if not is_loopback(peer) or any(name in headers for name in _FORWARDED):
        return "from other machines only who shows credentials may change something, and none are configured"
    if not _is_local(headers.get(b"host", b"").decode("latin-1")):
        return "the name in the Host header is not this machine's own: use localhost or 127.0.0.1"
    return ""


def _is_local(host: str) -> bool:
    """Return whether a Host header names the machine itself: a name of others may come to mean it at any time."""
    if host.startswith("["):
        return is_loopback(host[1:].partition("]")[0])
    name = host.partition(":")[0].lower().rstrip(".")
    return name in _LOCAL_NAMES or is_loopback(name)

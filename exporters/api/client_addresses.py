"""Client addresses: parsing, loopback detection, and mapping of addresses to clients."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

# Providers usually assign a network of this prefix length to each customer.
IPV6_PREFIX = 64


def ip_of(host: str) -> IPv4Address | IPv6Address | None:
    """Parse an IP address, and convert an IPv4-mapped IPv6 address to IPv4; return None for any other string."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_loopback(host: str) -> bool:
    """Return whether `host` is a loopback address; False for any name, even localhost."""
    address = ip_of(host)
    return address is not None and address.is_loopback


def client_of(peer: str) -> str:
    """Return the client that an address stands for: an IPv4 address, an IPv6 /64 network or "loopback".

    A string that is not an IP address is returned unchanged.
    """
    address = ip_of(peer)
    if address is None:
        return peer
    if address.is_loopback:
        return "loopback"
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, IPV6_PREFIX), strict=False))
    return str(address)

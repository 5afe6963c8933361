"""Addresses of clients."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

# What one customer of a provider usually has.
IPV6_PREFIX = 64


def ip_of(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a text spells, one of IPv4 written as IPv6 as that of IPv4; None for other texts."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_loopback(host: str) -> bool:
    """Return whether a text is a loopback address."""
    address = ip_of(host)
    return address is not None and address.is_loopback


def client_of(peer: str) -> str:
    """Return what counts as one client: an IPv4 address, an IPv6 network, or all loopback addresses."""
    address = ip_of(peer)
    if address is None:
        return peer
    if address.is_loopback:
        return "loopback"
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, IPV6_PREFIX), strict=False))
    return str(address)

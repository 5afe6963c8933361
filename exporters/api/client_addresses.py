"""Client addresses: parsing, loopback detection, and mapping of addresses to clients."""

from ipaddress import IPv4Address, IPv6Address, ip_address


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

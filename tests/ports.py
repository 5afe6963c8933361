"""Ports for servers that tests start."""

import socket


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port that no program uses at present."""
    with socket.socket() as bound:
        bound.bind((host, 0))
        return int(bound.getsockname()[1])

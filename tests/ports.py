"""Ports for servers that tests start."""

import random
import socket
from contextlib import suppress

# The system chooses higher ports for connections and for servers that listen on any port, so no other program gets the
# port of a server that a test has stopped.
PORTS = range(20_000, 32_768)


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port that no program uses at present. Raises OSError if there is none."""
    for port in random.sample(PORTS, len(PORTS)):
        with suppress(OSError), socket.socket() as bound:
            bound.bind((host, port))
            return port
    raise OSError(f"{host}: no free port")

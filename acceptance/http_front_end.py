"""An HTTP server in front of a cluster: each request is one CQL read, so HTTP load generators can measure Cassandra.

As a program, it serves on 127.0.0.1 until SIGTERM. The first argument is the port, the others are the nodes' addresses.
"""

import random
import socket
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import DEVNULL, Popen

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RoundRobinPolicy

HOST, ROWS = "127.0.0.1", 10_000
# Its status is 404, and it causes no CQL read.
MISSING_PAGE = "missing"
READ = "SELECT id FROM latte.numbers WHERE id = ?"


class FrontEnd(ThreadingHTTPServer):
    """Reads a random row for each GET request."""

    daemon_threads = True

    def __init__(self, port: int, addresses: list[str]) -> None:
        profile = ExecutionProfile(RoundRobinPolicy(), consistency_level=ConsistencyLevel.LOCAL_ONE)
        cluster = Cluster(addresses, execution_profiles={EXEC_PROFILE_DEFAULT: profile})
        self._session = cluster.connect()
        self._statement = self._session.prepare(READ)
        super().__init__((HOST, port), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore broken connections, which load generators leave at their end; print a traceback of other errors."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    def read(self) -> int:
        """Read a row; return how many were found: none if the replica lacks the row."""
        key = random.randrange(ROWS)  # noqa: S311 - not for cryptography
        return len(self._session.execute(self._statement, [key]).all())


class _Handler(BaseHTTPRequestHandler):
    # Connections are kept open.
    protocol_version = "HTTP/1.1"
    server: FrontEnd

    def do_GET(self) -> None:
        is_missing = self.path.endswith(MISSING_PAGE)
        content = b"" if is_missing else str(self.server.read()).encode()
        self.send_response(HTTPStatus.NOT_FOUND if is_missing else HTTPStatus.OK)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_values: object) -> None:
        """Log nothing."""


def start(port: int, addresses: list[str]) -> "Popen[bytes]":
    """Start the server as a process of its own."""
    return Popen(
        [sys.executable, "-m", __spec__.name, str(port), *addresses], cwd=Path(__file__).parents[1], stdin=DEVNULL
    )


def is_serving(port: int) -> bool:
    """Return whether the server accepts connections."""
    with socket.socket() as connection:
        return connection.connect_ex((HOST, port)) == 0


if __name__ == "__main__":
    with FrontEnd(int(sys.argv[1]), sys.argv[2:]) as front_end:
        front_end.serve_forever()

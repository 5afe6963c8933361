"""`python -m benchmarks.null_store PORT`: a store that accepts writes but discards them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Read the body and answer with status 204."""
        missing = int(self.headers.get("Content-Length", 0))
        while missing and (data := self.rfile.read(min(missing, 1 << 16))):
            missing -= len(data)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Do not log requests."""


@contextmanager
def null_store(port: int) -> Iterator[None]:
    """Run the store in a process of its own for the duration of the block."""
    with subprocess.Popen([sys.executable, "-m", "benchmarks.null_store", str(port)]) as store:
        try:
            yield
        finally:
            store.terminate()


def main(port: int) -> None:
    """Serve on the loopback address until killed."""
    ThreadingHTTPServer(("127.0.0.1", port), _Handler).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]))

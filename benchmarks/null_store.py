"""`python -m benchmarks.null_store PORT`: takes whatever is written to it, as InfluxDB does, and forgets it."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Take the body."""
        rest = int(self.headers.get("Content-Length", 0))
        while rest and (data := self.rfile.read(min(rest, 1 << 16))):
            rest -= len(data)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def main(port: int) -> None:
    """Serve on the loopback address until ended."""
    ThreadingHTTPServer(("127.0.0.1", port), _Handler).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""A fake Grafana that records requests and sends scripted responses; once it has sent them, it accepts everything."""

import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, object]]


@dataclass(frozen=True)
class Request:
    path: str
    authorization: str
    body: Any


class FakeGrafana:
    """Listens on loopback and appends every request to `requests`."""

    def __init__(self, *script: Answer) -> None:
        answers, requests = list(script), list[Request]()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Otherwise each body waits for the acknowledgement of its head, which takes 40 ms.
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                requests.append(Request(self.path, self.headers["Authorization"], json.loads(body)))
                status, response = answers.pop(0) if answers else (200, {"status": "success"})
                text = json.dumps(response).encode()
                self.send_response(status)
                self.send_header("Location", "http://127.0.62.3:1/")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                """Suppress the request log."""

        self.requests = requests
        self._server = ThreadingHTTPServer(("127.0.62.3", 0), Handler)
        self.url = f"http://127.0.62.3:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

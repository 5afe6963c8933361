"""An HTTP server that stands in for an agent in tests of `casstat fetch`, with responses that a test sets."""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.faults.recording_agent import HOST

Respond = Callable[[BaseHTTPRequestHandler], None]
"""Sends the response to a request."""
Responses = Mapping[str, bytes | Respond]
"""The body of the response, or the function that sends it, by path below /api/v1/."""

TIME_S = 1_700_000_000.0
"""The time of the agent whose responses are defined below; its clock stands still."""
NODE = b'{"node": "n1", "casstat": "0.1.0", "interval_s": 1.0}'
FILE = "20231114T221320.jsonl.zst"
"""The name of a journal file that begins at TIME_S."""
FILE_PATH = f"journal/{FILE}"
SIZE_BYTES = 5000
"""The size of each file in the agent's list, whatever its content."""


class FakeAgentServer:
    """Sends the given responses, and HTTP 404 to requests for all other paths.

    connections  the number of connections so far.
    paths        the requested paths below /api/v1/.
    """

    def __init__(self, responses: Responses) -> None:
        self.connections = 0
        self.paths: list[str] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Otherwise each body waits for the acknowledgement of its head, which takes 40 ms.
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                path = self.path.partition("?")[0].removeprefix("/api/v1/")
                fake.paths.append(path)
                response = responses.get(path)
                if response is None:
                    send(self, b"{}", status=404)
                elif isinstance(response, bytes):
                    send(self, response)
                else:
                    response(self)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        class QuietServer(ThreadingHTTPServer):
            def process_request(self, *arguments: Any) -> None:
                fake.connections += 1
                super().process_request(*arguments)

            def handle_error(self, *_: object) -> None:
                """Print nothing, because clients may hang up."""

        self._server = QuietServer((HOST, 0), Handler)
        self.address = f"{HOST}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def send(
    handler: BaseHTTPRequestHandler, body: bytes, size_bytes: int | None = None, status: int = 200, tag: str = ""
) -> None:
    """Send `body` with a Content-Length of `size_bytes`, by default its actual size, and the ETag `tag`, if any."""
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body) if size_bytes is None else size_bytes))
    if tag:
        handler.send_header("ETag", tag)
    handler.end_headers()
    handler.wfile.write(body)


def send_one_byte(handler: BaseHTTPRequestHandler) -> None:
    """Announce 1000 bytes, send only one, and close the connection."""
    send(handler, b"x", 1000, status=206 if "Range" in handler.headers else 200, tag='"1"')
    handler.close_connection = True


def times(received_s: object, sent_s: object) -> bytes:
    """Return the response to a request for the agent's time."""
    return json.dumps({"received_s": received_s, "sent_s": sent_s}).encode()


def listing(*names: str) -> bytes:
    """Return the agent's list of journal files as JSON; each file's size is SIZE_BYTES."""
    return json.dumps([{"name": name, "size_bytes": SIZE_BYTES} for name in names]).encode()


def responses(**changed: bytes | Respond) -> dict[str, bytes | Respond]:
    """Return the responses of an agent with an empty journal; those in `changed` replace or extend them."""
    return {"node": NODE, "time": times(TIME_S, TIME_S), "journal": b"[]", **changed}


def responses_with_file(content: bytes | Respond, names: Sequence[str] = (FILE,)) -> dict[str, bytes | Respond]:
    """Return the responses of an agent that lists journal files with these names, but has only FILE."""
    return {**responses(journal=listing(*names)), FILE_PATH: content}

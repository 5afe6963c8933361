"""An S3 server in the test process; its objects outlive a stop."""

import logging
import socket
import threading
from contextlib import suppress

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import BaseWSGIServer, make_server

from tests.ports import free_port
from tests.waiting import eventually

# An address of its own, where no other program takes the port while the server is stopped.
HOST = "127.0.62.9"


class _Handler(MotoRequestHandler):
    # Otherwise each body waits for the acknowledgement of its head, which takes 40 ms.
    disable_nagle_algorithm = True


class S3Server:
    """A server that accepts any credentials; `environ` are the variables with which clients find it."""

    def __init__(self) -> None:
        self._port = free_port(HOST)
        self._server: BaseWSGIServer | None = None
        self.environ = {
            "AWS_ENDPOINT_URL": f"http://{HOST}:{self._port}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        # The server logs every request.
        logging.getLogger("werkzeug").setLevel(logging.ERROR)

    def start(self) -> None:
        """Start the server unless it is running."""
        if self._server is not None:
            return
        application = DomainDispatcherApplication(create_backend_app)
        with self._listening() as bound:
            self._server = make_server(
                HOST, self._port, application, threaded=True, request_handler=_Handler, fd=bound.fileno()
            )
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _listening(self) -> socket.socket:
        """Return a socket that listens on the port, once the connections of a stopped server have released it."""
        sockets = list[socket.socket]()

        def is_bound() -> bool:
            with suppress(OSError):
                sockets.append(socket.create_server((HOST, self._port)))
            return bool(sockets)

        eventually(is_bound)
        return sockets[0]

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

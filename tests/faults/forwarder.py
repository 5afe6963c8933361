"""A TCP forwarder in front of a fake Jolokia, with optional TLS; it records what clients send."""

import contextlib
import socket
import ssl
import threading


class Forwarder:
    """Listens on 127.0.0.1 and forwards each connection to `port`; with a TLS context, it accepts only TLS."""

    def __init__(self, port: int, context: ssl.SSLContext | None = None) -> None:
        self.connections = 0
        self.received = b""
        self._target = port
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        self._streams: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"{'https' if self._context else 'http'}://127.0.0.1:{self.port}/jolokia"

    def stop(self) -> None:
        """Stop listening and close all connections."""
        for stream in (self._listener, *self._streams):
            _shut(stream)
            stream.close()

    def _accept(self) -> None:
        while True:
            try:
                stream, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._streams.append(stream)
            threading.Thread(target=self._serve, args=(stream,), daemon=True).start()

    def _serve(self, stream: socket.socket) -> None:
        # Clients that disconnect or fail the handshake are expected.
        with contextlib.suppress(OSError), stream:
            if self._context is not None:
                stream = self._context.wrap_socket(stream, server_side=True)
                self._streams.append(stream)
            with socket.create_connection(("127.0.0.1", self._target)) as upstream:
                backward = threading.Thread(target=_forward, args=(upstream, stream), daemon=True)
                backward.start()
                while data := stream.recv(1 << 16):
                    self.received += data
                    upstream.sendall(data)
                _shut(upstream)
                backward.join()


def _forward(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    _shut(target)


def _shut(stream: socket.socket) -> None:
    with contextlib.suppress(OSError):
        stream.shutdown(socket.SHUT_RDWR)

"""Container health check: exit with status 0 if the agent in this container is healthy; otherwise report the problem.

It needs no secrets: an agent that responds but requires a password or a client certificate counts as healthy. It
detects missing ticks only if the agent requires neither. CASSTAT_LISTEN gives the agent's address, because the check
cannot see the agent's command line.
"""

import http.client
import os
import ssl
import sys
import urllib.error
import urllib.request

TIMEOUT_S = 2.0


def problem(host: str, port: str) -> str:
    """Return the problem with the agent at this address; "" if it is healthy."""
    try:
        return _problem(f"https://{host}:{port}/-/healthy")
    except (OSError, http.client.HTTPException):
        # The agent uses plain HTTP, requires a client certificate, or is not listening.
        pass
    try:
        return _problem(f"http://{host}:{port}/-/healthy")
    except (http.client.HTTPException, ConnectionResetError):
        # An agent that uses TLS closes plain HTTP connections, so a closed connection shows that it is running.
        return ""
    except OSError as error:
        return f"{host}:{port}: {error}"


def _problem(url: str) -> str:
    """Return the problem that the agent at this URL reports; "" if none. Raises OSError and HTTPException."""
    # The agent's certificate need not be valid for the loopback address.
    context = ssl._create_unverified_context()  # noqa: S323
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), urllib.request.ProxyHandler({}))
    try:
        opener.open(url, timeout=TIMEOUT_S).close()
    except urllib.error.HTTPError as error:
        with error:
            return error.read(1000).decode(errors="replace").strip() if error.code == 503 else ""
    return ""


if __name__ == "__main__":
    listen_host, _, listen_port = os.environ.get("CASSTAT_LISTEN", "127.0.0.1:17199").rpartition(":")
    local = "127.0.0.1" if listen_host in ("", "0.0.0.0", "[::]") else listen_host  # noqa: S104
    sys.exit(problem(local, listen_port) or 0)

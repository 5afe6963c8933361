"""Reads a node through a Jolokia agent that runs elsewhere and acts as a proxy to the node's JMX.

An agent that is not a proxy, such as the JVM agent of version 1, silently reads its own JVM. Each POST therefore also
reads the JVM's identity, both with and without the target; the responses are used only if the identities differ.
"""

import json
from collections.abc import Sequence
from typing import Any

from collector.http.failures import Reason
from collector.node.jolokia.jolokia_access import JolokiaAccess, service_url

RUNTIME = "java.lang:type=Runtime"
IDENTITY = json.dumps({"type": "read", "mbean": RUNTIME, "attribute": ["Name", "StartTime"]})
PROBE = json.dumps({"type": "search", "mbean": RUNTIME})
# A search through a Jolokia 2 proxy also returns names from the proxy's own JVM; the target's names have this prefix.
MARK = "proxy@"

Answer = dict[str, Any]


class ProxyError(Exception):
    """The target cannot be read through the proxy. `quoted` is the proxy's own error message, "" if there is none."""

    def __init__(self, text: str, reason: Reason = Reason.OTHER, quoted: str = "") -> None:
        super().__init__(text)
        self.text, self.reason, self.quoted = text, reason, quoted


class ProxyTarget:
    """Represents the node behind a proxy: adds its address to requests, and checks that the responses come from it."""

    def __init__(self, access: JolokiaAccess) -> None:
        self.url = service_url(access.target)
        target = {"url": self.url}
        if access.target_user:
            target |= {"user": access.target_user, "password": access.target_password}
        self._suffix = f', "target": {json.dumps(target)}}}'

    def requests(self, requests: Sequence[str]) -> list[str]:
        """Return the requests to post to the proxy so that the target receives `requests` (each a JSON object)."""
        checks = [IDENTITY, PROBE] if any(map(_is_search, requests)) else [IDENTITY]
        return [IDENTITY, *(request[:-1] + self._suffix for request in (*checks, *requests))]

    def answers(self, requests: Sequence[str], answers: Sequence[Answer]) -> list[Answer]:
        """Return the target's responses to `requests`, given all of the proxy's responses. Raises ProxyError."""
        proxy, target, *rest = answers
        self._require_another_jvm(proxy, target)
        searches = [_is_search(request) for request in requests]
        if not any(searches):
            return rest
        probe, *rest = rest
        if not _marked_names(probe):
            return rest
        return [
            {**answer, "value": _marked_names(answer)} if is_search and "value" in answer else answer
            for is_search, answer in zip(searches, rest, strict=True)
        ]

    def _require_another_jvm(self, proxy: Answer, target: Answer) -> None:
        if target.get("status") != 200:
            error = str(target.get("error", "no reason given"))
            raise ProxyError(f"cannot read {self.url}", _reason(error), error)
        if _identity(proxy) is None or _identity(target) is None:
            text = f"cannot identify the JVM behind the proxy: the proxy's policy must allow reading {RUNTIME}"
            raise ProxyError(text)
        if _identity(proxy) == _identity(target):
            raise ProxyError("not a proxy: it reports its own JVM", Reason.NOT_A_PROXY)


def _is_search(request: str) -> bool:
    return '"type": "search"' in request


def _identity(response: Answer) -> tuple[str, int] | None:
    value = response.get("value")
    if response.get("status") != 200 or not isinstance(value, dict):
        return None
    name, start_ms = value.get("Name"), value.get("StartTime")
    return (name, start_ms) if isinstance(name, str) and isinstance(start_ms, int) else None


def _marked_names(response: Answer) -> list[str]:
    """Return the names that begin with the prefix MARK, which are the target's, without that prefix."""
    names = response.get("value")
    if not isinstance(names, list):
        return []
    return [name[len(MARK) :] for name in names if isinstance(name, str) and name.startswith(MARK)]


def _reason(error: str) -> Reason:
    if "Authentication failed" in error or "Credentials" in error:
        return Reason.TARGET_CREDENTIALS
    if "not allowed by configuration" in error:
        return Reason.TARGET_FORBIDDEN
    return Reason.TARGET_UNREACHABLE

"""Reading a node through a Jolokia elsewhere that is a proxy to its JMX.

A Jolokia that is no proxy answers for its own JVM, without a word (the JVM agent of version 1 does): so each POST
also asks which JVM this is, with and without the target, and only what differs is believed.
"""

import json
from collections.abc import Sequence
from typing import Any

from collector.jolokia.access import Access, service_url

RUNTIME = "java.lang:type=Runtime"
WHO = json.dumps({"type": "read", "mbean": RUNTIME, "attribute": ["Name", "StartTime"]})
PROBE = json.dumps({"type": "search", "mbean": RUNTIME})
# Jolokia 2 finds its own JVM's names too, and marks those of the target.
MARK = "proxy@"

Answer = dict[str, Any]


class ProxyError(Exception):
    """The proxy did not read the target: what that means, what the proxy said itself, and what to do."""

    def __init__(self, meaning: str, said: str = "", advice: str = "") -> None:
        super().__init__(meaning)
        self.meaning, self.said, self.advice = meaning, said, advice


class Target:
    """The node behind the proxy, and how requests name it."""

    def __init__(self, access: Access) -> None:
        self.url = service_url(access.target)
        target = {"url": self.url}
        if access.target_user:
            target |= {"user": access.target_user, "password": access.target_password}
        self._end = f', "target": {json.dumps(target)}}}'

    def requests(self, requests: Sequence[str]) -> list[str]:
        """Return what to ask the proxy for `requests` (each one JSON object)."""
        checks = [WHO, PROBE] if any(map(_is_search, requests)) else [WHO]
        return [WHO, *(request[:-1] + self._end for request in (*checks, *requests))]

    def answers(self, requests: Sequence[str], answers: Sequence[Answer]) -> list[Answer]:
        """Return the target's answers to `requests`, given all that the proxy answered. Raises ProxyError."""
        proxy, target, *rest = answers
        self._require_other(proxy, target)
        searched = [_is_search(request) for request in requests]
        if not any(searched):
            return rest
        probe, *rest = rest
        if not _marked(probe):
            return rest
        return [
            {**answer, "value": _marked(answer)} if search and "value" in answer else answer
            for search, answer in zip(searched, rest, strict=True)
        ]

    def _require_other(self, proxy: Answer, target: Answer) -> None:
        if target.get("status") != 200:
            why = str(target.get("error", "no reason given"))
            raise ProxyError(f"it does not read {self.url}: ", why, _advice(why))
        if _identity(proxy) is None or _identity(target) is None:
            raise ProxyError(f"it does not tell which JVM it reads: its policy must allow reading {RUNTIME}")
        if _identity(proxy) == _identity(target):
            raise ProxyError("it is no proxy, and answers for its own JVM: leave out --jolokia-target, or make it one")


def _is_search(request: str) -> bool:
    return '"type": "search"' in request


def _identity(answer: Answer) -> tuple[str, int] | None:
    value = answer.get("value")
    if answer.get("status") != 200 or not isinstance(value, dict):
        return None
    name, start_ms = value.get("Name"), value.get("StartTime")
    return (name, start_ms) if isinstance(name, str) and isinstance(start_ms, int) else None


def _marked(answer: Answer) -> list[str]:
    """Return the names that are marked as the target's, without the mark."""
    names = answer.get("value")
    if not isinstance(names, list):
        return []
    return [name[len(MARK) :] for name in names if isinstance(name, str) and name.startswith(MARK)]


def _advice(why: str) -> str:
    if "Authentication failed" in why or "Credentials" in why:
        return " (give --jolokia-target-user and --jolokia-target-password-file)"
    if "not allowed by configuration" in why:
        return " (allow it with Jolokia's own setting jsr160ProxyAllowedTargets)"
    return " (--jolokia-target)"

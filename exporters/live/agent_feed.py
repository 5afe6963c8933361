"""A node through its agent: the last sample at once, then each one as it comes, and again when the agent is back."""

import asyncio
import errno
import json
import os
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import urlencode

from collector.cluster.live.agent_connection import Answer, Events, Link, LinkError
from collector.cluster.live.node_address import Target
from collector.http.failures import ConnectionClosedError, Failures
from collector.jolokia.access import Access
from collector.model.sample import Sample
from collector.model.sample_json import MalformedSampleError, decoded
from collector.printable import one_line
from exporters.live.frame_assembler import NodeInfo
from exporters.live.live_columns import needed

CONNECT_S = 3.0
FIRST_S, LONGEST_S = 0.5, 5.0
# Who was well for so long is asked again at once; who is not, however well it begins, ever more rarely.
STEADY_S = 10.0
OK, NOT_FOUND, UNAUTHORIZED = 200, 404, 401
JSON, EVENTS = "application/json", "text/event-stream"
MOST_PEERS, LONGEST_ADDRESS = 2000, 64


class FeedListener(Protocol):
    """Who takes what an agent says; all times are wall time."""

    def sample(self, key: str, sample: Sample, *, is_last: bool = False) -> None:
        """Take a sample; `is_last` for the last one there was, which may have been there for a while."""

    def known(self, key: str, known: NodeInfo, address: str, peers: Sequence[str]) -> None:
        """Take what is known of the node, its own address, and the addresses of all nodes of its cluster."""

    def failed(self, key: str, why: str) -> None:
        """Take note that it does not answer."""


class AgentFeed:
    """Follows one agent until it is cancelled."""

    def __init__(
        self,
        key: str,
        target: Target,
        access: Access,
        tls: ssl.SSLContext | None,
        heard: FeedListener,
        links: set[Link],
    ) -> None:
        """Take what it is called, where it is, who to be for it, and the set of links whose deadlines are watched."""
        self._key = key
        self._target = target
        self._tls = tls
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in access.headers.items())
        self._failures = Failures(target.host, target.scheme == "https", access)
        self._heard = heard
        self._links = links
        self._patterns: Sequence[str] = ()
        self._last_s: float | None = None
        self._events: Link | None = None
        self._pause_s = FIRST_S
        self._anew = False
        self._is_met = False
        self._ever_answered = False

    def want(self, patterns: Sequence[str]) -> None:
        """Ask for metrics of these names from now on."""
        if patterns != self._patterns:
            self._patterns = patterns
            self._anew = True
            if self._events is not None:
                self._events.fail(LinkError("other metrics are wanted"))

    async def follow(self) -> None:
        """Go on until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._anew = False
            began_s = loop.time()
            try:
                await self._session()
            except (
                LinkError,
                OSError,
                MalformedSampleError,
                ssl.SSLError,
                TimeoutError,
                asyncio.TimeoutError,
            ) as error:
                if self._anew:
                    continue
                self._heard.failed(self._key, self._why(error))
            # It may be another one when it is back.
            self._is_met = False
            if loop.time() - began_s > STEADY_S:
                self._pause_s = FIRST_S
            await asyncio.sleep(self._pause_s)
            self._pause_s = min(2 * self._pause_s, LONGEST_S)

    async def ask_again(self) -> None:
        """Ask the agent once more who its node is and whom it knows; without an answer nothing is new."""
        try:
            link = await self._connect()
        except (OSError, asyncio.TimeoutError):
            return
        try:
            await self._ask_who(link)
        except (LinkError, OSError):
            return
        finally:
            self._leave(link)

    async def _session(self) -> None:
        if not self._is_met:
            await self._meet()
        # Events end the connection: they have one of their own.
        link = self._events = await self._connect()
        try:
            answer = await self._ask(link, self._samples(self._last_s), EVENTS, self._take)
            if answer.status != OK or not answer.headers.get("content-type", "").startswith(EVENTS):
                raise LinkError(self._refusal(answer))
            await link.closed
            raise link.failure or ConnectionResetError()
        finally:
            self._events = None
            self._leave(link)

    async def _meet(self) -> None:
        """Take the last sample there is, and ask who the node is."""
        link = await self._connect()
        try:
            if self._last_s is None:
                self._take_last(await self._ask(link, self._samples(None), JSON))
            await self._ask_who(link)
        finally:
            self._leave(link)
        self._is_met = True

    async def _connect(self) -> Link:
        loop = asyncio.get_running_loop()
        target = self._target
        name = target.host if self._tls else None
        making = loop.create_connection(
            lambda: Link(loop.time), target.host, target.port, ssl=self._tls, server_hostname=name
        )
        _, link = await asyncio.wait_for(making, CONNECT_S)
        self._links.add(link)
        return link

    def _leave(self, link: Link) -> None:
        self._links.discard(link)
        link.fail(ConnectionResetError())

    async def _ask(self, link: Link, path: str, accept: str, events: Events | None = None) -> Answer:
        head = f"GET {path} HTTP/1.1\r\nHost: {self._target.authority}\r\nAccept: {accept}\r\nUser-Agent: casstat\r\n"
        answer = await link.ask(f"{head}{self._headers}\r\n".encode(), events)
        self._ever_answered = True
        return answer

    def _samples(self, since_s: float | None) -> str:
        asked = [("metric", pattern) for pattern in self._patterns]
        if since_s is not None:
            asked.append(("since", repr(since_s)))
        return f"/api/v1/samples?{urlencode(asked)}"

    def _take_last(self, answer: Answer) -> None:
        if answer.status != OK:
            raise LinkError(self._refusal(answer))
        content = _json(answer.body)
        if not isinstance(content, list):
            raise LinkError("its samples are none: is this an agent?")
        for each in content[-1:]:
            self._heard_of(each, is_last=True)

    def _take(self, data: bytes) -> None:
        self._heard_of(_json(data))

    def _heard_of(self, content: Any, *, is_last: bool = False) -> None:
        if content is None:
            return
        try:
            values = content.get("values") if isinstance(content, dict) else None
            sample = decoded({**content, "values": needed(values)} if isinstance(values, dict) else content)
        except MalformedSampleError as error:
            raise LinkError(f"a sample {one_line(error)}") from None
        self._last_s = sample.tick.time_s
        self._heard.sample(self._key, sample, is_last=is_last)

    async def _ask_who(self, link: Link) -> None:
        answer = await self._ask(link, "/api/v1/node", JSON)
        if answer.status != OK:
            raise LinkError(self._refusal(answer))
        content = _json(answer.body)
        if not isinstance(content, Mapping):
            raise LinkError("what it says of the node is nothing: is this an agent?")
        address, peers = _text(content, "address"), content.get("peers")
        found = peers[:MOST_PEERS] if isinstance(peers, list) else []
        usable = [peer for peer in found if isinstance(peer, str) and 0 < len(peer) <= LONGEST_ADDRESS]
        self._heard.known(self._key, known_of(content), address, usable)

    def _refusal(self, answer: Answer) -> str:
        """Return what an answer means that is none."""
        if answer.status == UNAUTHORIZED:
            user = self._failures.access.user
            if user:
                return f"HTTP 401: it does not take the credentials of '{one_line(user)}' (--agent-user)"
            return "HTTP 401: it wants credentials: give --agent-user and --agent-password-file"
        if answer.status in (OK, NOT_FOUND):
            return "it answers, but not as a casstat agent does: for a Jolokia give its whole URL"
        return f"HTTP {answer.status} {self._failures.quoted(answer.reason)}"

    def _why(self, error: Exception) -> str:
        if isinstance(error, LinkError):
            return str(error)
        # Of a name with several addresses asyncio tells all errors in one text.
        if isinstance(error, ConnectionRefusedError) or f"[Errno {errno.ECONNREFUSED}]" in str(error):
            at = self._target.authority
            return f"no agent listens at {at}: start one there with 'casstat agent', or give the URL of a Jolokia"
        if isinstance(error, TimeoutError | asyncio.TimeoutError):
            return "no answer in time"
        if (
            isinstance(error, OSError)
            and (error.errno or 0) > 0
            and not isinstance(error, ssl.SSLError | ConnectionError)
        ):
            return os.strerror(error.errno or 0)
        try:
            return of_agent(self._failures.of_error(error, greets=False))
        except ConnectionClosedError:
            if self._ever_answered:
                return "it closed the connection"
            return of_agent(f"it {self._failures.of_silence(answered=False)}")


def of_agent(text: str) -> str:
    """Return what is said of access to a Jolokia as it is to be said of an agent's."""
    return text.replace("--jolokia-", "--agent-").replace("Jolokia", "the agent")


def known_of(content: Mapping[str, Any]) -> NodeInfo:
    """Return what an agent says of its node, so far as it is what it should be."""
    place = "/".join(filter(None, (_text(content, "dc"), _text(content, "rack"))))
    interval_s = content.get("interval_s")
    usable = isinstance(interval_s, int | float) and 0.01 <= interval_s <= 86400
    return NodeInfo(
        _text(content, "cluster"),
        place,
        _text(content, "source") == "nodetool",
        float(interval_s) if usable and interval_s is not None else 0.0,
        _text(content, "machine"),
        _text(content, "network"),
        _text(content, "disk"),
        _text(content, "interface"),
    )


def _text(content: Mapping[str, Any], key: str) -> str:
    found = content.get(key)
    return found[:200] if isinstance(found, str) else ""


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise LinkError("what it says is no JSON: is this an agent?") from None

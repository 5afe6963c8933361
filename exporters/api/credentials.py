"""Names and passwords held against bcrypt's hashes: slow by design, so never in the way of anything else."""

import asyncio
import base64
import binascii
import contextlib
import hashlib
import hmac
import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from exporters.api.client_addresses import client_of
from exporters.api.fair_queue import FairQueue

REMEMBERED = 256
NICENESS = 10
# All that bcrypt has ever looked at.
LONGEST_BYTES = 72
_SALT_AND_HASH = "." * 53


class BusyError(Exception):
    """So many passwords are being checked that this one must wait: ask again in a second."""


def credentials(header: bytes) -> tuple[str, bytes] | None:
    """Return the name and the password of an Authorization header; None when it holds none."""
    scheme, _, rest = header.partition(b" ")
    if scheme.lower() != b"basic":
        return None
    with contextlib.suppress(binascii.Error, UnicodeDecodeError):
        name, colon, password = base64.b64decode(rest.strip(), validate=True).partition(b":")
        return (name.decode(), password) if colon else None
    return None


@dataclass(frozen=True, eq=False)
class _Check:
    """A password to check; its result is None if there is no room for it."""

    key: bytes
    password: bytes
    hashed: str
    result: "asyncio.Future[bool | None]"


class Passwords:
    """Checks one password at a time, in a thread that gives way to all others; remembers what it found out."""

    def __init__(self) -> None:
        # What is remembered tells nothing to whoever gets hold of it, nor how long finding it takes.
        self._secret = os.urandom(32)
        self._known: dict[bytes, bool] = {}
        self._thread = ThreadPoolExecutor(1, "passwords", _give_way)
        self._queue = FairQueue[_Check]()
        self._checks: dict[bytes, _Check] = {}
        self._worker: asyncio.Task[None] | None = None
        # Clients that have shown a right password, the latest last.
        self._trusted: dict[str, None] = {}

    async def fit(self, users: Mapping[str, str], name: str, password: bytes, peer: str) -> bool:
        """Return whether a user has that password; one that nobody has takes as long. Raises BusyError."""
        hashed = users.get(name) or self._nobodys(users, name)
        key = self._digest(name.encode("utf-8", "replace"), hashed.encode(), password)
        client = client_of(peer)
        fits: bool | None = self._known.get(key)
        if fits is None:
            # Who asks the same at the same time gets the same answer.
            check = self._checks.get(key) or self._enqueue(key, password, hashed, client, name)
            fits = await asyncio.shield(check.result)
        if fits is None:
            raise BusyError
        if not fits or name not in users:
            return False
        self._trust(client)
        return True

    def close(self) -> None:
        """Check nothing any more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _enqueue(self, key: bytes, password: bytes, hashed: str, client: str, name: str) -> _Check:
        loop = asyncio.get_running_loop()
        check = self._checks[key] = _Check(key, password, hashed, loop.create_future())
        dropped = self._queue.put(client, name, check, trusted=client in self._trusted)
        if dropped is not None:
            self._finish(dropped, None)
        if self._worker is None:
            self._worker = loop.create_task(self._work())
        return check

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while (check := self._queue.pop()) is not None:
                try:
                    fits = await loop.run_in_executor(self._thread, _fits, check.password, check.hashed)
                except Exception as error:
                    del self._checks[check.key]
                    check.result.set_exception(error)
                else:
                    self._remember(check.key, fits=fits)
                    self._finish(check, fits)
        finally:
            self._worker = None

    def _finish(self, check: _Check, fits: bool | None) -> None:
        del self._checks[check.key]
        check.result.set_result(fits)

    def _trust(self, client: str) -> None:
        self._trusted.pop(client, None)
        self._trusted[client] = None
        if len(self._trusted) > REMEMBERED:
            del self._trusted[next(iter(self._trusted))]

    def _remember(self, key: bytes, *, fits: bool) -> None:
        self._known[key] = fits
        while len(self._known) > REMEMBERED:
            # Who guesses does not push out those who know.
            wrong = next((each for each, right in self._known.items() if not right), None)
            self._known.pop(wrong or next(iter(self._known)))

    def _nobodys(self, users: Mapping[str, str], name: str) -> str:
        """Return a hash that no password has, and that takes as long to check as one of the users'."""
        hashes = sorted(users.values())
        which = int.from_bytes(self._digest(name.encode("utf-8", "replace"))[:8], "big") % len(hashes)
        return f"{hashes[which][:7]}{_SALT_AND_HASH}"

    def _digest(self, *parts: bytes) -> bytes:
        whole = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        return hmac.new(self._secret, whole, hashlib.sha256).digest()


def _fits(password: bytes, hashed: str) -> bool:
    try:
        # Only where passwords are asked for. It compares in constant time.
        import bcrypt

        return bcrypt.checkpw(password[:LONGEST_BYTES], hashed.encode())
    except ValueError:
        return False


def _give_way() -> None:
    """Let the thread run when nothing else wants to: Linux has priorities of threads."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)

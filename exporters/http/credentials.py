"""Names and passwords held against bcrypt's hashes: slow by design, so never in the way of anything else."""

import asyncio
import base64
import binascii
import contextlib
import hashlib
import hmac
import os
import threading
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

REMEMBERED = 256
WAITING, WAITING_PER_PEER = 16, 4
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


class Passwords:
    """Checks one password at a time, in a thread that gives way to all others; remembers what it found out."""

    def __init__(self) -> None:
        # What is remembered tells nothing to whoever gets hold of it, nor how long finding it takes.
        self._secret = os.urandom(32)
        self._known: dict[bytes, bool] = {}
        self._thread = ThreadPoolExecutor(1, "passwords", _give_way)
        self._waiting: Counter[str] = Counter()
        self._checks: dict[bytes, asyncio.Future[bool]] = {}

    async def fit(self, users: Mapping[str, str], name: str, password: bytes, peer: str) -> bool:
        """Return whether a user has that password; one that nobody has takes as long. Raises BusyError."""
        hashed = users.get(name) or self._nobodys(users, name)
        key = self._digest(name.encode("utf-8", "replace"), hashed.encode(), password)
        known = self._known.get(key)
        if known is None:
            # Who asks the same at the same time gets the same answer.
            check = self._checks.get(key)
            if check is None:
                check = self._checks[key] = asyncio.ensure_future(self._checked(key, password, hashed, peer))
                check.add_done_callback(lambda _: self._checks.pop(key, None))
            known = await asyncio.shield(check)
        return known and name in users

    def close(self) -> None:
        """Check nothing any more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _checked(self, key: bytes, password: bytes, hashed: str, peer: str) -> bool:
        if self._waiting.total() >= WAITING or self._waiting[peer] >= WAITING_PER_PEER:
            raise BusyError
        self._waiting[peer] += 1
        try:
            fits = await asyncio.get_running_loop().run_in_executor(self._thread, _fits, password, hashed)
        finally:
            self._waiting[peer] -= 1
            self._waiting = +self._waiting
        self._remember(key, fits=fits)
        return fits

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

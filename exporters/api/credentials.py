"""Password checks against bcrypt hashes. They are slow by design and therefore run in a low-priority thread."""

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

REMEMBERED = 256
MAX_WAITING = 32
NICENESS = 10
# bcrypt ignores any bytes beyond this limit, and newer versions of the library reject longer passwords.
MAX_BYTES = 72
_SALT_AND_HASH = "." * 53


class BusyError(Exception):
    """Raised if too many password checks are waiting; the client should try again in a second."""


def credentials(header: bytes) -> tuple[str, bytes] | None:
    """Return the user name and password from an Authorization header, or None if it is not a valid Basic header."""
    scheme, _, rest = header.partition(b" ")
    if scheme.lower() != b"basic":
        return None
    with contextlib.suppress(binascii.Error, UnicodeDecodeError):
        name, colon, password = base64.b64decode(rest.strip(), validate=True).partition(b":")
        return (name.decode(), password) if colon else None
    return None


class Passwords:
    """Checks one password at a time in a low-priority thread, and caches the results.

    At most MAX_WAITING checks wait. A client whose password is in the cache is served without a check, whatever others
    guess.
    """

    def __init__(self) -> None:
        # Cache keys are keyed digests, so neither a leaked cache nor the timing of a lookup reveals anything about
        # passwords.
        self._secret = os.urandom(32)
        self._known: dict[bytes, bool] = {}
        self._thread = ThreadPoolExecutor(1, "passwords", _give_way)
        self._turn = asyncio.Lock()
        self._checks: dict[bytes, asyncio.Task[bool]] = {}

    async def check(self, users: Mapping[str, str], name: str, password: bytes) -> bool:
        """Return whether the password is right; the check takes equally long for an unknown user. Raises BusyError."""
        hashed = users.get(name) or self._dummy_hash(users, name)
        key = self._digest(name.encode("utf-8", "replace"), hashed.encode(), password)
        is_right = self._known.get(key)
        if is_right is None:
            # Simultaneous requests with the same password share one check.
            check = self._checks.get(key)
            if check is None:
                if len(self._checks) > MAX_WAITING:
                    raise BusyError
                check = self._checks[key] = asyncio.create_task(self._checked(key, password, hashed))
            is_right = await asyncio.shield(check)
        return is_right and name in users

    def close(self) -> None:
        """Stop checking passwords."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _checked(self, key: bytes, password: bytes, hashed: str) -> bool:
        try:
            async with self._turn:
                loop = asyncio.get_running_loop()
                is_right = await loop.run_in_executor(self._thread, _is_right, password, hashed)
        finally:
            del self._checks[key]
        self._remember(key, is_right=is_right)
        return is_right

    def _remember(self, key: bytes, *, is_right: bool) -> None:
        self._known[key] = is_right
        while len(self._known) > REMEMBERED:
            # Wrong guesses must not evict valid passwords from the cache.
            wrong = next((key for key, right in self._known.items() if not right), None)
            self._known.pop(wrong or next(iter(self._known)))

    def _dummy_hash(self, users: Mapping[str, str], name: str) -> str:
        """Return a hash that no password matches, with the cost of one of the users' hashes."""
        hashes = sorted(users.values())
        which = int.from_bytes(self._digest(name.encode("utf-8", "replace"))[:8], "big") % len(hashes)
        return f"{hashes[which][:7]}{_SALT_AND_HASH}"

    def _digest(self, *parts: bytes) -> bytes:
        message = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        return hmac.new(self._secret, message, hashlib.sha256).digest()


def _is_right(password: bytes, hashed: str) -> bool:
    try:
        # Imported only when passwords are configured. checkpw compares in constant time.
        import bcrypt

        return bcrypt.checkpw(password[:MAX_BYTES], hashed.encode())
    except ValueError:
        return False


def _give_way() -> None:
    """Lower the priority of this thread: on Linux, niceness is per thread."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)

"""Password checks during an attack: waiting checks are bounded, and clients that have logged in are served at once."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator

import bcrypt
import pytest

from exporters.api.auth import REMEMBERED, BusyError, Passwords
from exporters.api.samples_endpoint import client_of
from tests.every import every

RIGHT = b"right"
HASHED = bcrypt.hashpw(RIGHT, bcrypt.gensalt(4)).decode()
USERS = {"alice": HASHED, "prometheus": HASHED}


class SlowHash:
    """A stand-in for bcrypt that records the passwords it checks; each check blocks until `allow` permits it."""

    def __init__(self) -> None:
        self.checked: list[bytes] = []
        self._allowed = threading.Semaphore(0)

    def __call__(self, password: bytes, hashed: bytes) -> bool:
        assert self._allowed.acquire(timeout=60)
        self.checked.append(password)
        return password == RIGHT

    def allow(self, checks: int) -> None:
        for _ in range(checks):
            self._allowed.release()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowHash]:
    slow_hash = SlowHash()
    monkeypatch.setattr(bcrypt, "checkpw", slow_hash)
    yield slow_hash
    slow_hash.allow(1000)


class Guessers:
    """An attack by clients that guess passwords."""

    def __init__(self, slow: SlowHash) -> None:
        self.slow = slow
        self.passwords = Passwords()
        self.tasks: list[asyncio.Task[bool]] = []
        self.refused = 0

    async def guess(self, threads: int) -> None:
        """Start `threads` concurrent guessers.

        Each guesser has four passwords of its own; if the server is too busy to check one, the guesser tries the next.
        """
        first = len(self.tasks)

        async def thread(number: int) -> bool:
            for attempt in range(4):
                try:
                    return await self.passwords.check(USERS, "alice", b"%d %d" % (number, attempt))
                except BusyError:
                    self.refused += 1
                    await asyncio.sleep(0)
            return False

        self.tasks += [asyncio.create_task(thread(first + number)) for number in range(threads)]
        await asyncio.sleep(0)

    async def login(self, within: int, user: str = "alice") -> bool:
        """Log in with the right password, allow `within` more checks, and return whether the login succeeds."""
        task = asyncio.create_task(self.passwords.check(USERS, user, RIGHT))
        await asyncio.sleep(0)
        self.slow.allow(within)
        return await asyncio.wait_for(task, 20)


def under_attack(slow: SlowHash, scenario: Callable[[Guessers], Awaitable[None]]) -> None:
    async def run_scenario() -> None:
        guessers = Guessers(slow)
        await scenario(guessers)
        for task in guessers.tasks:
            task.cancel()
        slow.allow(1000)
        guessers.passwords.close()

    asyncio.run(run_scenario())


def test_a_first_login_waits_for_its_turn(slow: SlowHash) -> None:
    async def scenario(guessers: Guessers) -> None:
        await guessers.guess(30)
        assert await guessers.login(31)
        assert guessers.refused == 0

    under_attack(slow, scenario)


def test_a_client_that_has_logged_in_is_served_under_a_flood_of_guesses(slow: SlowHash) -> None:
    async def scenario(guessers: Guessers) -> None:
        assert await guessers.login(1)
        for _ in range(10):
            await guessers.guess(100)
            assert await guessers.login(0)
            slow.allow(100)
            await asyncio.gather(*guessers.tasks)
        # The results of wrong guesses do not replace that of the right password.
        assert len(slow.checked) > REMEMBERED
        assert await guessers.login(0)
        assert guessers.refused > 0

    under_attack(slow, scenario)


def test_a_first_login_is_refused_while_too_many_checks_wait(slow: SlowHash) -> None:
    async def scenario(guessers: Guessers) -> None:
        await guessers.guess(100)
        with pytest.raises(BusyError):
            await guessers.login(0, "prometheus")
        slow.allow(1000)
        await asyncio.gather(*guessers.tasks)
        assert await guessers.login(1, "prometheus")

    under_attack(slow, scenario)


def test_guesses_beyond_the_queue_are_refused(slow: SlowHash) -> None:
    async def scenario(guessers: Guessers) -> None:
        await guessers.guess(100)
        await asyncio.sleep(0)
        assert guessers.refused >= 60

    under_attack(slow, scenario)


def test_every_check_that_fails_ends_its_own_request(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(password: bytes, hashed: bytes) -> bool:
        raise MemoryError

    monkeypatch.setattr(bcrypt, "checkpw", broken)
    passwords = Passwords()

    async def twice() -> None:
        for _ in range(2):
            with pytest.raises(MemoryError):
                await passwords.check(USERS, "alice", RIGHT)

    asyncio.run(twice())
    passwords.close()


@every(
    ("peer", "client"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("127.0.0.1", "loopback"),
        ("127.9.9.9", "loopback"),
        ("::1", "loopback"),
        ("2001:db8:0:1::7", "2001:db8:0:1::/64"),
        ("2001:db8:0:1:ffff::9", "2001:db8:0:1::/64"),
        ("", ""),
    ],
)
def test_a_clients_addresses_are_grouped(peer: str, client: str) -> None:
    assert client_of(peer) == client

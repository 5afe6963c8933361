"""Password checks during an attack: checks are slow, but clients take turns, so users can still log in."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator

import bcrypt
import pytest
from hypothesis import given
from hypothesis import strategies as some

from exporters.api.client_addresses import client_of
from exporters.api.credentials import BusyError, Passwords
from exporters.api.fair_queue import FairQueue

RIGHT = b"right"
HASHED = bcrypt.hashpw(RIGHT, bcrypt.gensalt(4)).decode()
USERS = {"alice": HASHED, "prometheus": HASHED}
GUESSER, HONEST = "10.0.0.66", "10.0.0.1"


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

    async def guess(self, threads: int, peer: str, user: str = "alice") -> None:
        """Start `threads` concurrent guessers with the client address `peer`.

        Each guesser has four passwords of its own; if the server is too busy to check one, the guesser tries the next.
        """

        async def thread(number: int) -> bool:
            for attempt in range(4):
                try:
                    return await self.passwords.check(USERS, user, b"%s %d %d" % (peer.encode(), number, attempt), peer)
                except BusyError:
                    self.refused += 1
                    await asyncio.sleep(0)
            return False

        self.tasks += [asyncio.create_task(thread(number)) for number in range(threads)]
        await asyncio.sleep(0)

    async def login(self, within: int, peer: str, user: str = "alice") -> bool:
        """Log in with the right password, allow `within` more checks, and return whether the login succeeds."""
        task = asyncio.create_task(self.passwords.check(USERS, user, RIGHT, peer))
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


def test_a_login_from_another_address_waits_for_a_few_checks(slow: SlowHash) -> None:
    async def scenario(guessers: Guessers) -> None:
        await guessers.guess(30, GUESSER)
        assert await guessers.login(3, HONEST)

    under_attack(slow, scenario)


def test_a_login_by_another_user_from_the_same_address_waits_for_a_few_checks(slow: SlowHash) -> None:
    async def scenario(guessers: Guessers) -> None:
        await guessers.guess(100, GUESSER)
        assert await guessers.login(3, GUESSER, "prometheus")

    under_attack(slow, scenario)


def test_a_login_by_the_attacked_user_from_the_same_address_waits_for_its_turn(slow: SlowHash) -> None:
    async def scenario(guessers: Guessers) -> None:
        await guessers.guess(30, GUESSER)
        assert await guessers.login(31, GUESSER)
        assert guessers.refused == 0

    under_attack(slow, scenario)


def test_a_login_succeeds_while_many_addresses_guess(slow: SlowHash) -> None:
    async def scenario(guessers: Guessers) -> None:
        for number in range(16):
            await guessers.guess(30, f"10.1.0.{number}")
        assert await guessers.login(20, HONEST)

    under_attack(slow, scenario)


def test_an_address_that_logged_in_has_room_in_a_full_queue(slow: SlowHash) -> None:
    async def scenario(guessers: Guessers) -> None:
        assert await guessers.login(1, HONEST)
        for number in range(200):
            await guessers.guess(1, f"10.1.0.{number}")
        # Log in as another user, because the first user's password is cached.
        assert await guessers.login(3, HONEST, "prometheus")

    under_attack(slow, scenario)


def test_guesses_beyond_the_queue_are_refused(slow: SlowHash) -> None:
    async def scenario(guessers: Guessers) -> None:
        await guessers.guess(100, GUESSER)
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
                await passwords.check(USERS, "alice", RIGHT, HONEST)

    asyncio.run(twice())
    passwords.close()


@pytest.mark.parametrize(
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


@given(
    some.lists(
        some.one_of(some.none(), some.tuples(some.sampled_from("abcde"), some.sampled_from("xy"), some.booleans()))
    )
)
def test_the_queue_is_bounded_and_reports_every_dropped_item(steps: list[tuple[str, str, bool] | None]) -> None:
    queue = FairQueue[int](max_waiting=6, max_waiting_per_client=4)
    inside: set[int] = set()
    for number, step in enumerate(steps):
        if step is None:
            item = queue.pop()
            assert (item is None) == (not inside)
            inside -= {item}
            continue
        client, user, trusted = step
        inside.add(number)
        dropped = queue.put(client, user, number, trusted=trusted)
        inside -= {dropped}
        assert len(inside) <= 2 * 6
    while (item := queue.pop()) is not None:
        inside.remove(item)
    assert not inside

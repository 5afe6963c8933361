"""A scraper that asks once per tick gets every tick, wherever its scrapes fall."""

import asyncio
import random
from collections.abc import Awaitable
from typing import Any

import pytest

from collector.model.snapshot import NOWHERE, Identity, Snapshot, Tick
from collector.recording.writer import Position
from exporters.api.metrics_endpoint import KEPT, Turns
from exporters.recent_ticks import RecentTicks
from tests.examples import some_of

TICKS, BEGIN_S = 60, 1000
# A tick arrives this long after its time, and a scrape may begin this much earlier or later than planned.
READ_S, JITTER_S, LATE_SHARE = (0.005, 0.06), 0.02, 0.1


class Agent:
    """Ticks that arrive at simulated times, and the numbers of those that requests returned."""

    def __init__(self) -> None:
        self.now_s = float(BEGIN_S)
        self.recent = RecentTicks()
        self.turns = Turns(self.recent, lambda: self.now_s)

    def tick(self, time_s: float) -> None:
        self.recent.add(Snapshot("n", Tick(time_s), ()), Identity(), NOWHERE, None, Position(""))

    async def scrape(self, client: object, into: list[int]) -> None:
        await self.turns.take(client)
        into.append(self.recent.last.number if self.recent.last else 0)


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def scraped(phases_s: dict[str, float], interval_s: float, late_s: float, seed: int) -> dict[str, list[int]]:
    """Return the numbers of the ticks that each scraper got; its scrapes begin `phases_s` after a tick's time.

    A tenth of the ticks arrive later than the others by `late_s`.
    """
    agent, chance = Agent(), random.Random(seed)  # noqa: S311 - not for cryptography
    events: list[tuple[float, str, float]] = []
    for number in range(TICKS):
        time_s = BEGIN_S + number * interval_s
        delay_s = chance.uniform(*READ_S) + (late_s if chance.random() < LATE_SHARE else 0.0)
        events.append((time_s + delay_s, "", time_s))
        for client, phase_s in phases_s.items():
            events.append((time_s + phase_s + chance.uniform(-JITTER_S, JITTER_S), client, time_s))
    numbers: dict[str, list[int]] = {client: [] for client in phases_s}
    tasks = []
    for at_s, client, time_s in sorted(events):
        agent.now_s = at_s
        if client:
            tasks.append(asyncio.create_task(agent.scrape(client, numbers[client])))
        else:
            agent.tick(time_s)
        await settled()
    agent.tick(BEGIN_S + TICKS * interval_s)
    await asyncio.gather(*tasks)
    return numbers


@pytest.fixture(autouse=True)
def _no_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wait_for(awaitable: Awaitable[Any], _: float) -> Any:
        return await awaitable

    monkeypatch.setattr(asyncio, "wait_for", wait_for)


@pytest.mark.parametrize("late_s", [0.0, 0.3])
@pytest.mark.parametrize("interval_s", [1.0, 10.0])
def test_every_tick_is_scraped_once(interval_s: float, late_s: float) -> None:
    phases_s = {str(percent): percent / 100 for percent in some_of(range(-50, 50))}
    for numbers in asyncio.run(scraped(phases_s, interval_s, late_s, seed=1)).values():
        # Before the second tick, it is unknown when the next one will arrive.
        later = numbers[3:]
        assert later == list(range(later[0], later[0] + len(later)))


def test_a_request_does_not_wait_for_a_tick_that_is_not_due() -> None:
    async def scenario() -> list[int]:
        agent, numbers = Agent(), list[int]()
        await agent.scrape("a", numbers)
        for time_s in (BEGIN_S, BEGIN_S + 1):
            agent.now_s = time_s
            agent.tick(time_s)
            await agent.scrape("a", numbers)
        for at_s in (0.1, 0.5, 0.65, 1.5, 5.0, 500.0):
            agent.now_s = BEGIN_S + 1 + at_s
            await agent.scrape("a", numbers)
        return numbers

    assert asyncio.run(scenario()) == [0, 1, 2, 2, 2, 2, 2, 2, 2]


def test_a_client_waits_again_after_a_late_tick() -> None:
    async def scenario() -> list[int]:
        agent, numbers = Agent(), list[int]()
        for time_s in (BEGIN_S, BEGIN_S + 1):
            agent.now_s = time_s
            agent.tick(time_s)
        # The third tick is so late that the request before it is answered without it.
        agent.now_s = BEGIN_S + 2.5
        await agent.scrape("a", numbers)
        agent.tick(BEGIN_S + 2)
        # The next one is not late.
        agent.now_s = BEGIN_S + 2.98
        waiting = asyncio.create_task(agent.scrape("a", numbers))
        await settled()
        agent.tick(BEGIN_S + 3)
        await waiting
        return numbers

    assert asyncio.run(scenario()) == [2, 4]


def test_a_request_gives_up_waiting_for_a_late_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    async def expire(awaitable: Any, _: float) -> Any:
        awaitable.close()
        raise asyncio.TimeoutError

    monkeypatch.setattr(asyncio, "wait_for", expire)

    async def scenario() -> list[int]:
        agent, numbers = Agent(), list[int]()
        for time_s in (BEGIN_S, BEGIN_S + 1):
            agent.now_s = time_s
            agent.tick(time_s)
        agent.now_s += 0.95
        await agent.scrape("a", numbers)
        return numbers

    assert asyncio.run(scenario()) == [2]


@pytest.mark.parametrize("has_ticks", [True, False])
def test_the_number_of_connections_that_are_remembered_is_limited(has_ticks: bool) -> None:
    async def scenario() -> int:
        agent, numbers = Agent(), list[int]()
        for number in range(2 * KEPT):
            if has_ticks or number < 2:
                agent.now_s = BEGIN_S + number
                agent.tick(agent.now_s)
            await agent.scrape(number, numbers)
        return len(agent.turns._served)

    assert asyncio.run(scenario()) <= KEPT

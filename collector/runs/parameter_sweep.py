"""A sweep: a run for each combination of parameters and each repeat.

Times are in seconds since the epoch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from math import prod

RANDOM, GIVEN = "random", "given"
"""The orders of a sweep's combinations."""


@dataclass(frozen=True)
class SweptParameter:
    """A parameter and its values in the order in which they were given, all different."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class SweepSettings:
    """The settings that each run of a sweep or a search has in common, and on which its results depend.

    command, before, after  the words of the command, and of the commands that run before and after each run, with
                            placeholders for the parameters; no words if there is no such command.
    nodes, seeds            the nodes, as they were given.
    client_hosts            the addresses of the client hosts.
    clients                 the files with client results, with placeholders.
    duration_s              the time after which the command is ended; None if there is no limit.
    warm_up_s, cool_down_s  the durations of the warm-up and the cool-down.
    mark_regex              the pattern of marks; "" if there is none.
    tags                    the tags of all runs, as KEY=VALUE.
    """

    command: tuple[str, ...]
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    client_hosts: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    duration_s: float | None = None
    warm_up_s: float = 0.0
    cool_down_s: float = 0.0
    mark_regex: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class SweepRun:
    """A run of a sweep that has ended.

    folder            the run's directory, relative to the sweep's; it does not exist if the run could not begin.
    begin_s, end_s    when casstat began and completed the run.
    problem           why the run failed, as one line; "" if it succeeded.
    """

    folder: str
    begin_s: float
    end_s: float
    problem: str = ""


@dataclass(frozen=True)
class Sweep:
    """A sweep: its parameters and settings, the order of its runs, and the runs that have ended.

    order         RANDOM or GIVEN.
    order_seed    the number that determines the random order.
    repeats       the number of runs of each combination.
    pause_s       the time between two runs.
    items_per_op  the parameter whose value is the number of items, such as rows of a batch, per operation; "" if the
                  results have no throughput in items. Only the presentation of the results depends on it.
    """

    name: str
    begin_s: float
    casstat: str
    parameters: tuple[SweptParameter, ...]
    settings: SweepSettings
    order: str
    order_seed: int
    repeats: int = 1
    pause_s: float = 0.0
    items_per_op: str = ""
    runs: tuple[SweepRun, ...] = ()

    @property
    def run_count(self) -> int:
        """The number of all runs, including those that have not ended."""
        return prod(len(parameter.values) for parameter in self.parameters) * self.repeats

    def combinations(self) -> list[dict[str, str]]:
        """Return the values of all parameters for each combination; the last parameter changes fastest."""
        names = [parameter.name for parameter in self.parameters]
        values = product(*(parameter.values for parameter in self.parameters))
        return [dict(zip(names, combination, strict=True)) for combination in values]

    def schedule(self) -> Iterator[tuple[int, int]]:
        """Yield the index of the combination and the repeat, counted from 1, of each run in the order of the sweep.

        Each repeat is a complete pass over all combinations, so that a slow change does not affect only some of them.
        """
        indices = range(len(self.combinations()))
        for repeat in range(1, self.repeats + 1):
            ordered = sorted(indices, key=lambda index: self._rank(repeat, index)) if self.order == RANDOM else indices
            yield from ((index, repeat) for index in ordered)

    def _rank(self, repeat: int, index: int) -> bytes:
        """Return a number that determines a combination's position, and is the same in all versions of Python."""
        return sha256(f"{self.order_seed} {repeat} {index}".encode()).digest()

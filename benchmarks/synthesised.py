"""Recordings of a large cluster, made from the recording of one real node, whose ticks they repeat.

The counters go on where the ticks are repeated, and the nodes differ by where they begin.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

from collector.journal.header import Header
from collector.journal.reader import entries, read
from collector.journal.segments import journal_files
from collector.journal.writer import Journal, Limits
from collector.model.metric import Kind, Metric, Value
from collector.model.snapshot import Scrape, Snapshot

SCALARS = 250
HISTOGRAMS = 9
BEGIN_S = 1_700_000_000.0
Key = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class Pattern:
    """What is repeated: `ticks`, a second apart, and what each counter gains from one repetition to the next."""

    head: Header
    ticks: Sequence[Snapshot]
    gains: Mapping[Key, Value]

    def node(self, name: str, begin: int, count: int) -> Iterator[Snapshot]:
        """Yield so many ticks of a node, from the one at `begin` on."""
        for number in range(count):
            round_, place = divmod(begin + number, len(self.ticks))
            snapshot = self.ticks[place]
            scrapes = tuple(self._later(scrape, round_) for scrape in snapshot.scrapes)
            yield Snapshot(name, replace(snapshot.tick, time_s=BEGIN_S + number), scrapes)

    def _later(self, scrape: Scrape, rounds: int) -> Scrape:
        values = {
            series: _plus(value, rounds, self.gains.get((scrape.source, series)))
            for series, value in scrape.values.items()
        }
        return replace(scrape, at_s=scrape.at_s + rounds * len(self.ticks), values=values)


@lru_cache(maxsize=1)
def pattern(recording: Path) -> Pattern:
    """Return what a recording without gaps has in every tick: so many scalars and histograms, those that change most.

    The first two ticks are left out: the node's facts are learnt in them.
    """
    found = list(entries(each for file in journal_files(recording) for each in read(file)))[2:]
    ticks = [entry.snapshot for entry in found]
    head = found[-1].head
    chosen = _chosen(ticks)
    kept = [
        replace(
            snapshot,
            scrapes=tuple(
                replace(scrape, values={s: value for s, value in scrape.values.items() if (scrape.source, s) in chosen})
                for scrape in snapshot.scrapes
            ),
        )
        for snapshot in ticks
    ]
    first, second, last = (_values(kept[place]) for place in (0, 1, -1))
    grows = {key for key in first if _grows(head.catalogue.get(key[1][0]))}
    # From the last tick to the first one after it as much as from the first to the second.
    gains = {key: _plus(_plus(last[key], 1, second[key]), -2, first[key]) for key in grows}
    return Pattern(head, kept, gains)


def _values(snapshot: Snapshot) -> dict[Key, Value]:
    return {(scrape.source, series): value for scrape in snapshot.scrapes for series, value in scrape.values.items()}


def _chosen(ticks: Sequence[Snapshot]) -> set[Key]:
    there: Counter[Key] = Counter()
    changes: Counter[Key] = Counter()
    before: dict[Key, Value] = {}
    for snapshot in ticks:
        values = _values(snapshot)
        there.update(values.keys())
        changes.update(key for key, value in values.items() if before.get(key) != value)
        before = values
    always = [key for key, number in changes.most_common() if there[key] == len(ticks)]
    scalars = [key for key in always if not isinstance(before[key], tuple)]
    histograms = [key for key in always if isinstance(before[key], tuple)]
    if len(scalars) < SCALARS or len(histograms) < HISTOGRAMS:
        raise SystemExit(f"only {len(scalars)} scalars and {len(histograms)} histograms are in every tick")
    return {*scalars[:SCALARS], *histograms[:HISTOGRAMS]}


def _grows(metric: Metric | None) -> bool:
    return metric is not None and metric.kind in (Kind.COUNTER, Kind.HISTOGRAM)


def _plus(value: Value, times: int, gain: Value | None) -> Value:
    if gain is None or not times:
        return value
    if isinstance(value, tuple) and isinstance(gain, tuple):
        return tuple(count + times * more for count, more in zip(value, gain, strict=True))
    if isinstance(value, int | float) and isinstance(gain, int | float):
        return value + times * gain
    raise SystemExit("a series that is not always of one kind")


def cluster(recording: Path, folder: Path, nodes: int, ticks: int) -> list[Path]:
    """Record so many nodes into folders of their own, those alone that are not there yet, and return the folders."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"node{number:03d}" for number in range(nodes)]
    missing = [(path, number) for number, path in enumerate(paths) if not path.exists()]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(partial(_record, recording, ticks, nodes), *zip(*missing, strict=True)) if missing else ())
    return paths


def _record(recording: Path, ticks: int, nodes: int, folder: Path, number: int) -> None:
    source = pattern(recording)
    name = folder.name
    head = replace(source.head, session=name, boot=name, process=f"{number}@{name}")
    # What is whole has its name.
    unfinished = folder.with_name(f".{name}")
    begin = number * len(source.ticks) // nodes
    with closing(Journal(unfinished, lambda: head, Limits(sync="never"), print)) as journal:
        for snapshot in source.node(name, begin, ticks):
            journal.append(snapshot)
    unfinished.rename(folder)

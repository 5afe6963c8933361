"""Recordings of a large cluster, synthesised by repeating the ticks of one real node's recording.

Counters and histograms continue to grow from one repetition to the next. Each node begins at a different tick.
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
BEGIN_TIME_S = 1_700_000_000.0
Key = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class Pattern:
    """The ticks to repeat, one second apart, and the increase of each counter and histogram per repetition."""

    head: Header
    ticks: Sequence[Snapshot]
    increases: Mapping[Key, Value]

    def node(self, name: str, begin: int, count: int) -> Iterator[Snapshot]:
        """Yield `count` snapshots of a node, starting with the tick at index `begin`."""
        for number in range(count):
            repetition, index = divmod(begin + number, len(self.ticks))
            snapshot = self.ticks[index]
            scrapes = tuple(self._repeated(scrape, repetition) for scrape in snapshot.scrapes)
            yield Snapshot(name, replace(snapshot.tick, time_s=BEGIN_TIME_S + number), scrapes)

    def _repeated(self, scrape: Scrape, repetition: int) -> Scrape:
        values = {
            series: _plus(value, repetition, self.increases.get((scrape.source, series)))
            for series, value in scrape.values.items()
        }
        return replace(scrape, at_s=scrape.at_s + repetition * len(self.ticks), values=values)


@lru_cache(maxsize=1)
def pattern(recording: Path) -> Pattern:
    """Return the pattern of a recording that has no gaps.

    It consists of the `SCALARS` scalars and `HISTOGRAMS` histograms that change most often among those present in every
    tick. The first two ticks are omitted because the facts about the node are still incomplete in them.
    Raises SystemExit if there are too few such series.
    """
    recorded = list(entries(record for file in journal_files(recording) for record in read(file)))[2:]
    ticks = [entry.snapshot for entry in recorded]
    head = recorded[-1].head
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
    first, second, last = (_values(kept[index]) for index in (0, 1, -1))
    grows = {key for key in first if _grows(head.catalogue.get(key[1][0]))}
    # From the last tick to the next repetition, counters increase as they do from the first tick to the second.
    increases = {key: _plus(_plus(last[key], 1, second[key]), -2, first[key]) for key in grows}
    return Pattern(head, kept, increases)


def _values(snapshot: Snapshot) -> dict[Key, Value]:
    return {(scrape.source, series): value for scrape in snapshot.scrapes for series, value in scrape.values.items()}


def _chosen(ticks: Sequence[Snapshot]) -> set[Key]:
    present: Counter[Key] = Counter()
    changes: Counter[Key] = Counter()
    previous: dict[Key, Value] = {}
    for snapshot in ticks:
        values = _values(snapshot)
        present.update(values.keys())
        changes.update(key for key, value in values.items() if previous.get(key) != value)
        previous = values
    always = [key for key, number in changes.most_common() if present[key] == len(ticks)]
    scalars = [key for key in always if not isinstance(previous[key], tuple)]
    histograms = [key for key in always if isinstance(previous[key], tuple)]
    if len(scalars) < SCALARS or len(histograms) < HISTOGRAMS:
        raise SystemExit(f"only {len(scalars)} scalars and {len(histograms)} histograms are in every tick")
    return {*scalars[:SCALARS], *histograms[:HISTOGRAMS]}


def _grows(metric: Metric | None) -> bool:
    return metric is not None and metric.kind in (Kind.COUNTER, Kind.HISTOGRAM)


def _plus(value: Value, times: int, increase: Value | None) -> Value:
    if increase is None or not times:
        return value
    if isinstance(value, tuple) and isinstance(increase, tuple):
        return tuple(count + times * more for count, more in zip(value, increase, strict=True))
    if isinstance(value, int | float) and isinstance(increase, int | float):
        return value + times * increase
    raise SystemExit("a series has values of different kinds")


def cluster(recording: Path, folder: Path, nodes: int, ticks: int) -> list[Path]:
    """Write each node's recording into its own folder, unless that folder exists, and return all folders."""
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
    # The folder gets its final name once the recording is complete.
    unfinished = folder.with_name(f".{name}")
    begin = number * len(source.ticks) // nodes
    with closing(Journal(unfinished, lambda: head, Limits(sync="never"), print)) as journal:
        for snapshot in source.node(name, begin, ticks):
            journal.append(snapshot)
    unfinished.rename(folder)

"""Keeps the last known values of sources that answer at their own pace, to fill the rows between responses."""

from collections.abc import Sequence
from dataclasses import replace

from collector.model.metric import Series
from collector.model.sample import Derived, Sample
from collector.model.snapshot import Snapshot


class LastKnown:
    """Keeps the last values of the named sources and adds them, with their age, to each sample."""

    def __init__(self, sources: Sequence[str]) -> None:
        self._sources = sources
        self._values: dict[str, dict[Series, Derived]] = {}
        self._read_s: dict[str, float] = {}

    def add(self, snapshot: Snapshot, sample: Sample) -> Sample:
        """Return the sample with last known values added.

        A new response replaces all earlier values of its source; a failure without values removes them.
        """
        now_s = max((scrape.at_s for scrape in snapshot.scrapes), default=0.0)
        for scrape in snapshot.scrapes:
            if scrape.source not in self._sources:
                continue
            if scrape.problem and not scrape.values:
                self._values.pop(scrape.source, None)
            elif scrape.values:
                self._values[scrape.source] = {s: sample.values[s] for s in scrape.values if s in sample.values}
                self._read_s[scrape.source] = scrape.at_s
        stale = {s: v for values in self._values.values() for s, v in values.items() if s not in sample.values}
        # The first source provides the reads and writes, so its age is shown as the row's age.
        first = next((source for source in self._sources if source in self._read_s), None)
        return replace(sample, last_known=stale, age_s=now_s - self._read_s[first] if first else None)

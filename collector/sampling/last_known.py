"""What sources that answer at their own pace said last, for the rows in between."""

from collections.abc import Sequence
from dataclasses import replace

from collector.model.metric import Series
from collector.model.sample import Derived, Sample
from collector.model.snapshot import Snapshot


class LastKnown:
    """Keeps the last values of the sources with these names, and adds them to each Sample with their age."""

    def __init__(self, sources: Sequence[str]) -> None:
        self._sources = sources
        self._values: dict[str, dict[Series, Derived]] = {}
        self._read_s: dict[str, float] = {}

    def add(self, snapshot: Snapshot, sample: Sample) -> Sample:
        """Return the sample with what is held beside it; what a source says replaces all it said before."""
        now_s = max((scrape.at_s for scrape in snapshot.scrapes), default=0.0)
        for scrape in snapshot.scrapes:
            if scrape.source not in self._sources:
                continue
            if scrape.problem and not scrape.values:
                self._values.pop(scrape.source, None)
            elif scrape.values:
                self._values[scrape.source] = {s: sample.values[s] for s in scrape.values if s in sample.values}
                self._read_s[scrape.source] = scrape.at_s
        held = {s: v for values in self._values.values() for s, v in values.items() if s not in sample.values}
        # The first source is the one with the operations: the row is as old as they are.
        first = next((source for source in self._sources if source in self._read_s), None)
        return replace(sample, last_known=held, age_s=now_s - self._read_s[first] if first else None)

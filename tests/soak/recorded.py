"""Derives samples from a journal, like `casstat replay`, and from them the points that a store must have."""

from pathlib import Path

from collector.merge.aggregation import placement_of
from collector.model.snapshot import NOWHERE, Identity, Placement, Sample
from collector.node.catalogue import CATALOGUE
from collector.node.node_sampler import SampleStream
from collector.recording.journal_files import journal_files
from collector.recording.reader import entries, read
from exporters.sinks.parts.points import EVENTS, events, owner_tags, rows, tags, time_ms
from tests.real.stores import Points, name


def recorded(folder: Path) -> list[tuple[Identity, Placement, Sample]]:
    """Return a journal's samples, derived session by session, as `casstat replay` does."""
    samples: list[tuple[Identity, Placement, Sample]] = []
    identity, where, session, sampling = Identity(), NOWHERE, "", None
    for entry in entries(record for file in journal_files(folder) for record in read(file)):
        head = entry.head
        if head.session != session:
            session, where = head.session, placement_of(head)
            sampling = SampleStream(head.catalogue, head.sources, paced=head.paced, met=head.met)
        identity = identity.after(entry.snapshot)
        assert sampling is not None
        if (sample := sampling.add(entry.snapshot)) is not None:
            samples.append((identity, where, sample))
    return samples


def expected(folder: Path) -> Points:
    """Return the points that a store must have. Events are represented by their count, without their texts."""
    points: Points = {}
    for identity, where, sample in recorded(folder):
        for kind, texts in events(sample).items():
            event_times = points.setdefault(name(EVENTS, {**identity.labels(), "kind": kind}), {})
            event_times[time_ms(sample)] = {"count": float(len(texts))}
        for series, fields in rows(CATALOGUE, sample):
            metric = CATALOGUE[series[0]]
            labels = {**identity.labels(), **dict(owner_tags(metric, where)), **dict(tags(metric, series))}
            at_ms = time_ms(sample)
            times = points.setdefault(name(series[0], labels), {})
            assert at_ms not in times
            times[at_ms] = fields
    return points

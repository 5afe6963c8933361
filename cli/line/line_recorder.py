"""Records a node's snapshots in its journal."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from cli.errors import CasstatError
from collector.model.snapshot import Snapshot
from collector.node.catalogue import CATALOGUE
from collector.node.host import timekeeping
from collector.node.host.host_source import identity_of
from collector.node.sampling.node_sampler import NodeSampler
from collector.node.selection import Selection
from collector.recording.header import Header
from collector.recording.writer import Journal, JournalError, Limits


def journal_limits(total_bytes: int | None, sync: str) -> Limits:
    """Return the limits of a node's journal; if `total_bytes` is None, the default size applies."""
    return replace(Limits(), sync=sync, **({} if total_bytes is None else {"total_bytes": total_bytes}))


def open_journal(
    sampler: NodeSampler,
    folder: Path,
    limits: Limits,
    selection: Selection,
    interval_s: float,
    report: Callable[[str], None],
) -> Journal:
    """Return a journal in `folder` for the sampler's snapshots. Raises CasstatError if it cannot be opened."""
    answered_before = sampler.answered
    session = f"{time.time():.3f} {os.getpid()}"
    names = selection.metrics
    metrics = tuple(metric for name, metric in sorted(CATALOGUE.items()) if names is None or name in names)

    def header() -> Header:
        disk, interface = sampler.devices
        boot, network = identity_of(sampler.host)
        return Header(
            writer=version("casstat"),
            session=session,
            interval_s=interval_s,
            zone=time.localtime().tm_gmtoff,
            boot=boot,
            network=network,
            process=f"{sampler.facts.jvm} {sampler.facts.origin}" if sampler.facts.jvm else "",
            error_s=_clock_error_s(),
            way=sampler.kind,
            sources=tuple(sampler.node_sources),
            paced=sampler.paced,
            met=answered_before,
            disk=disk,
            interface=interface,
            metrics=metrics,
        )

    try:
        return Journal(folder, header, limits, report)
    except JournalError as error:
        raise CasstatError(str(error)) from None


def recorded(snapshots: Iterable[Snapshot], journal: Journal) -> Iterator[Snapshot]:
    """Append each snapshot to the journal, then yield it."""
    for snapshot in snapshots:
        journal.append(snapshot)
        yield snapshot


def _clock_error_s() -> float | None:
    try:
        state = timekeeping.clock_state()
    except (OSError, AttributeError):
        return None
    return state.max_error_s if state.synchronised else None

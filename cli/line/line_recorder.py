"""Recording while watching: a journal for the node."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote

from cli.errors import CasstatError
from collector.catalogue import CATALOGUE
from collector.host import clock_synchronisation
from collector.host.host_source import identity_of
from collector.journal.header import Header
from collector.journal.writer import Journal, JournalError, Limits, bounded
from collector.model.snapshot import Snapshot
from collector.sampling.node_sampler import NodeSampler
from collector.sampling.selection import Selection


def limits_of(total_bytes: int | None, sync: str) -> Limits:
    """Return the bounds of a recording: of all that is recorded of a node, None for as much as is usual."""
    return replace(Limits(), sync=sync, **({} if total_bytes is None else {"total_bytes": total_bytes}))


def open_journal(
    watch: NodeSampler,
    folder: Path,
    limits: Limits,
    selection: Selection,
    interval_s: float,
    say: Callable[[str], None],
) -> Journal:
    """Return a journal in `folder` for the snapshots of a sampler. Raises CasstatError when it cannot be opened."""
    met = watch.answered
    session = f"{time.time():.3f} {os.getpid()}"
    wanted = selection.metrics
    metrics = tuple(metric for name, metric in sorted(CATALOGUE.items()) if wanted is None or name in wanted)

    def head() -> Header:
        disk, interface = watch.devices
        boot, network = identity_of(watch.host)
        return Header(
            writer=version("casstat"),
            session=session,
            interval_s=interval_s,
            zone=time.localtime().tm_gmtoff,
            boot=boot,
            network=network,
            process=f"{watch.facts.jvm} {watch.facts.origin}" if watch.facts.jvm else "",
            error_s=_clock_error_s(),
            way=watch.kind,
            sources=tuple(watch.node_sources),
            paced=watch.paced,
            met=met,
            disk=disk,
            interface=interface,
            metrics=metrics,
        )

    try:
        return Journal(folder, head, limits, say)
    except JournalError as error:
        raise CasstatError(str(error)) from None


def recorded(snapshots: Iterable[Snapshot], journal: Journal) -> Iterator[Snapshot]:
    """Append each snapshot to the journal, then yield it."""
    for snapshot in snapshots:
        journal.append(snapshot)
        yield snapshot


def folder_name(node: str) -> str:
    """Return the name of a node's folder: a node's name may be an address with colons, or whatever it was called."""
    name = bounded(quote(node, safe=":", errors="replace"))
    return name if name.strip(".") else f"%{name}"


def _clock_error_s() -> float | None:
    try:
        kept = clock_synchronisation.read()
    except (OSError, AttributeError):
        return None
    return kept.max_error_s if kept.synchronised else None

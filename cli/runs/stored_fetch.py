"""Fetches the recordings of a time range from object storage into a run's directory."""

from pathlib import Path

from cli.errors import CasstatError
from cli.recordings.object_urls import open_store
from collector.agents.fetching import Fetched, FetchRange
from collector.merge.recordings import sessions
from collector.recording.object_store import ObjectStore, ObjectStoreError, parts_of
from collector.recording.reader import entries, read
from collector.recording.recording_download import download_recordings
from collector.recording.trimming import TickSpan
from collector.runs.run import RunNode
from collector.runs.run_file import NODES_FOLDER


def fetch_stored(url: str, wanted: FetchRange, run: Path) -> Fetched:
    """Fetch the ticks in a time range of all nodes at a URL into `run`. Raises CasstatError."""
    store = open_store(url)
    try:
        parts = parts_of(store.objects())
        if not parts:
            raise CasstatError(f"{store.name}: no recordings found")
        objects = [part.stored for of_file in parts.values() for part in of_file]
        folder = run / NODES_FOLDER
        download_recordings(store, objects, folder, wanted.begin_s, wanted.end_s)
        folders = {folder / node: f"{NODES_FOLDER}/{node}".rstrip("/") for node, _ in parts}
        return Fetched(tuple(_node(store, path, name, wanted) for path, name in folders.items()))
    except ObjectStoreError as error:
        raise CasstatError(str(error)) from None
    except OSError as error:
        return Fetched((), error)


def _node(store: ObjectStore, folder: Path, name: str, wanted: FetchRange) -> RunNode:
    """Return the node whose recording is in a directory. Raises OSError."""
    span = TickSpan()
    recorded, _ = sessions([folder])
    for session in recorded:
        for file in session.files:
            for entry in entries(read(file)):
                if wanted.begin_s <= entry.snapshot.tick.time_s <= wanted.end_s:
                    span.add(entry.snapshot.tick.time_s)
    address = f"{store.name}/{folder.name}"
    if not span.ticks:
        return RunNode(folder.name, address, problem=f"{address}: no ticks were recorded in this time range")
    last = max(recorded, key=lambda session: session.end_s)
    return RunNode(
        last.node, address, name, span.ticks, span.begin_s, span.end_s, last.head.interval_s, last.head.writer
    )

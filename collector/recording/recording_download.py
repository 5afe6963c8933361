"""Downloads recordings from object storage into directories like those that the agents wrote."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from itertools import pairwise
from math import inf
from pathlib import Path, PurePosixPath
from threading import Event

from collector.printable import one_line
from collector.recording.codec import MALFORMED
from collector.recording.frames import last_footer
from collector.recording.journal_upload import PART_S
from collector.recording.object_store import ObjectStore, ObjectStoreError, Part, StoredObject, parts_of
from collector.recording.trimming import extent_of, trimmed

MAX_PARALLEL = 8
# Parts this much before and after a time range are read as well: the first rates need earlier ticks, the clock may
# have been changed.
MARGIN_S = 3600.0

Files = Mapping[tuple[str, str], Sequence[Part]]


def recorded_times(files: Files) -> tuple[float, float]:
    """Return the times of the first and the last part; infinite if there are none."""
    begins_s = [part.begin_s for parts in files.values() for part in parts if part.begin_s]
    return min(begins_s, default=-inf), max(begins_s, default=inf) + (PART_S if begins_s else 0.0)


def needed(parts: Sequence[Part], from_s: float, to_s: float) -> list[Part]:
    """Return the parts of a file that may be needed for the ticks in a time range, without gaps between them.

    They include the earlier ticks that the first rates of the range need.
    """
    from_s, to_s = from_s - MARGIN_S, to_s + MARGIN_S
    kept = [
        index
        for index, (part, following) in enumerate(zip(parts, [*parts[1:], None], strict=True))
        if _may_overlap(part.begin_s, following.begin_s if following is not None else inf, from_s, to_s)
    ]
    return list(parts[kept[0] : kept[-1] + 1]) if kept else []


def _may_overlap(begin_s: float, end_s: float, from_s: float, to_s: float) -> bool:
    """Return whether a part between two times may have ticks in a range; a time of 0 is unknown."""
    if not begin_s or not end_s:
        return True
    return min(begin_s, end_s) <= to_s and from_s <= max(begin_s, end_s)


def download_recordings(
    store: ObjectStore, objects: Sequence[StoredObject], folder: Path, from_s: float = -inf, to_s: float = inf
) -> None:
    """Write the ticks of a time range, and those before it that rates need, to `folder`.

    `objects` are those of the store. Without a range, closed files are exactly those that were uploaded. Raises
    ObjectStoreError and OSError.
    """
    files = parts_of(objects)
    keys = {part.stored.key for parts in files.values() for part in parts}
    others = [stored for stored in objects if stored.key not in keys]
    last_files = dict(iter(files))
    stopped = Event()
    with ThreadPoolExecutor(MAX_PARALLEL) as pool:
        try:
            downloads = [pool.submit(_download_object, store, stored, folder, stopped) for stored in others]
            for (node, file), parts in files.items():
                path = (folder / _safe(node) if node else folder) / _safe(file)
                path.parent.mkdir(parents=True, exist_ok=True)
                is_last = file == last_files[node]
                downloads.append(
                    pool.submit(_download_file, store, parts, path, (from_s, to_s), stopped, is_last=is_last)
                )
            for download in downloads:
                download.result()
        finally:
            # After an error or Ctrl-C, the other downloads end with their current chunks.
            stopped.set()
            pool.shutdown(cancel_futures=True)


def _download_object(store: ObjectStore, stored: StoredObject, folder: Path, stopped: Event) -> None:
    path = folder.joinpath(*map(_safe, PurePosixPath(stored.key).parts))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as output:
        output.writelines(_until(stopped, store.chunks(stored.key)))


def _download_file(
    store: ObjectStore,
    parts: Sequence[Part],
    path: Path,
    range_s: tuple[float, float],
    stopped: Event,
    *,
    is_last: bool,
) -> None:
    """Write the parts of a file that a time range needs."""
    kept = needed(parts, *range_s)
    if not kept:
        return
    following = {part.offset: after.offset for part, after in pairwise(parts)}
    with path.open("wb") as output:
        for part in kept:
            # A part at the end of a file may have grown since the list was made, up to the next part.
            end = following.get(part.offset)
            chunks = _until(stopped, store.chunks(part.stored.key))
            output.writelines(_up_to(chunks, None if end is None else end - part.offset))
    # The last file has no footer if the agent is still writing to it.
    if len(kept) < len(parts) or parts[0].offset or (is_last and last_footer(path) is None):
        _trim(store, path, range_s, is_last=is_last, is_partial=kept[0].offset > 0)


def _until(stopped: Event, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks. Raises CancelledError if the download has been stopped."""
    for chunk in chunks:
        if stopped.is_set():
            raise CancelledError
        yield chunk


def _up_to(chunks: Iterable[bytes], size_bytes: int | None) -> Iterator[bytes]:
    """Yield the first `size_bytes` of the chunks; all of them if that is None."""
    for chunk in chunks:
        yield chunk[:size_bytes]
        if size_bytes is not None:
            size_bytes = max(size_bytes - len(chunk), 0)


def _trim(store: ObjectStore, path: Path, range_s: tuple[float, float], *, is_last: bool, is_partial: bool) -> None:
    """Cut a copy to a time range, so that the other ticks do not count as lost.

    `is_partial` states whether the beginning of the file is not in the copy. Raises ObjectStoreError and OSError.
    """
    whole = path.with_name(f".{path.name}")
    path.replace(whole)
    try:
        extent = extent_of(whole, *range_s, growing=True, is_last=is_last)
        if is_partial and extent.before is None:
            # Earlier ticks are not in this copy, but they are not lost.
            extent.before = extent.first
        if extent.first is not None:
            with path.open("wb") as output:
                output.writelines(trimmed(whole, extent))
    except (*MALFORMED, RecursionError) as error:
        raise ObjectStoreError(f"{store.name}: {path.name}: malformed record: {one_line(error)}") from None
    finally:
        whole.unlink()


def _safe(name: str) -> str:
    """Return a part of a key as a file name. Raises ObjectStoreError if it could refer to another directory."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ObjectStoreError(f"'{one_line(name)}' is not a valid name of a recording")
    return name

"""The files with the rows of one node or of the cluster: TSV, CSV and, if pyarrow is installed, Parquet.

The TSV and CSV files have no header, since they become parts of a run's tables.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

import zstandard

from collector.merge.merge_job import NodeRun
from exporters.rows.merged_rows import SUFFIXES, Row, Table, Text

Files = Sequence[tuple[PurePosixPath, bytes]]
"""Relative paths and contents."""


@dataclass(frozen=True)
class Part:
    """The rows of one node or of the cluster within a file of several nodes' rows."""

    path: Path
    offset: int
    size_bytes: int


@dataclass(frozen=True)
class WrittenFiles:
    """The rows as TSV and as CSV, and the paths of the other files."""

    rows: tuple[Part, ...]
    others: tuple[Path, ...]


def node_cells(table: Table, node: NodeRun, names: Sequence[str]) -> Iterator[tuple[int, Row]]:
    """Yield the index of each of a node's intervals, and its row with only some columns."""
    # Imported here because a run is also recorded without numpy.
    from exporters.rows.column_arrays import array_cells

    return array_cells(table, node, names)


def files_of(table: Table, run: str, node: str, text: Text) -> Files:
    """Return the files, beginning with TSV and CSV; `text` is the rows."""
    files = [(PurePosixPath(f"rows{suffix}"), rows.encode()) for suffix, rows in zip(SUFFIXES, text, strict=True)]
    if find_spec("pyarrow") is not None and text[1]:
        from exporters.rows.parquet import rows_parquet, table_path

        files.append((table_path("rows", run, node), rows_parquet(table, text[1])))
    return files


def packed(files: Files) -> Files:
    """Return the files, compressed."""
    compressor = zstandard.ZstdCompressor(level=1)
    return [(path, compressor.compress(content)) for path, content in files]


def unpacked(files: Files) -> Files:
    decompressor = zstandard.ZstdDecompressor()
    return [(path, decompressor.decompress(content)) for path, content in files]


def write_parts(folder: Path, files: Files) -> WrittenFiles:
    """Write the files of `files_of` to a directory. Raises OSError.

    Each process appends all rows to the same two files, since deleting one file per node would take seconds.
    """
    rows = []
    for relative, content in files[: len(SUFFIXES)]:
        with (folder / f"{os.getpid()}-{relative}").open("ab") as file:
            rows.append(Part(Path(file.name), file.tell(), len(content)))
            file.write(content)
    return WrittenFiles(tuple(rows), tuple(write_files(folder, files[len(SUFFIXES) :])))


def join(paths: Sequence[Path], parts: Iterable[Sequence[Part]]) -> None:
    """Append the TSV and the CSV rows of each node to the files at `paths`. Raises OSError."""
    for target_path, target_parts in zip(paths, zip(*parts, strict=True), strict=True):
        with target_path.open("ab") as target:
            for part in target_parts:
                with part.path.open("rb") as file:
                    file.seek(part.offset)
                    target.write(file.read(part.size_bytes))


def write_files(folder: Path, files: Files) -> list[Path]:
    """Write the files to a directory; return their paths. Raises OSError."""
    paths = []
    for relative, content in files:
        path = folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        paths.append(path)
    return paths


def moved(path: Path, folder: Path, target: Path) -> Path:
    """Move a file from `folder` to the same place in `target`; return its new path. Raises OSError."""
    new_path = target / path.relative_to(folder)
    new_path.parent.mkdir(parents=True, exist_ok=True)
    return path.replace(new_path)

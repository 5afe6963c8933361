"""The files with the rows of one node or of the cluster: TSV, CSV and, if pyarrow is installed, Parquet.

The TSV and CSV files have no header, since they become parts of a run's tables.
"""

import zlib
from collections.abc import Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from exporters.files.merged_rows import Table
from exporters.files.tsv_csv import SUFFIXES, Text

Files = Sequence[tuple[PurePosixPath, bytes]]
"""Relative paths and contents."""


def files_of(table: Table, run: str, node: str, text: Text) -> Files:
    """Return the files; `text` is the rows."""
    name = sha256(node.encode(errors="replace")).hexdigest()
    files = [(PurePosixPath(f"{name}{suffix}"), rows.encode()) for suffix, rows in zip(SUFFIXES, text, strict=True)]
    if find_spec("pyarrow") is not None and text[1]:
        from exporters.files.parquet import table_path
        from exporters.files.parquet_rows import rows_parquet

        files.append((table_path("rows", run, node), rows_parquet(table, text[1])))
    return files


def packed(files: Files) -> Files:
    """Return the files, compressed."""
    return [(path, zlib.compress(content, 1)) for path, content in files]


def unpacked(files: Files) -> Files:
    """Return the files that were packed."""
    return [(path, zlib.decompress(content)) for path, content in files]


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

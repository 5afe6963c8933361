"""Access to object storage: S3, and directories of the local file system.

Only the commands that read or write objects import fsspec; the agent uploads with a process of its own.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qsl, unquote, urlsplit

from collector.printable import one_line
from collector.recording.writer import SUFFIX, sort_key

# The URL schemes, each with the package that it requires.
PACKAGES = {"s3": "s3fs", "file": "fsspec"}
S3, FILE = PACKAGES
ENDPOINT = "endpoint"
CONNECT_S, READ_S, ATTEMPTS = 10, 60, 3
# The size of requests to the store; S3 needs at least 5 MiB for a part of an upload.
CHUNK_BYTES = 8 << 20
# The default maximum of an object that is read as a whole: more than a part of a journal or a file of one.
MAX_READ_BYTES = 256 << 20


class ObjectStoreError(Exception):
    """Object storage cannot be used; the message is one line with the URL and the cause."""


class ObjectMissingError(ObjectStoreError):
    """There is no such object or bucket."""


class _ReadError(Exception):
    """A local file cannot be read while it is being written to a store."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(str(reason))
        self.reason = reason


@dataclass(frozen=True)
class StoredObject:
    """An object; its key is relative to the URL of the store."""

    key: str
    size_bytes: int


def is_object_url(text: str) -> bool:
    """Return whether a text is the URL of object storage, not a path."""
    scheme, separator, _ = text.partition("://")
    return bool(separator) and scheme in PACKAGES


def package_for(url: str) -> str:
    """Return the package that the storage at a valid URL requires."""
    return PACKAGES[url.partition("://")[0]]


def object_store_name(url: str) -> str:
    """Return the name of a store in messages, its URL without parameters. Raises ObjectStoreError."""
    return one_line(_parsed(url)[0])


class ObjectStore:
    """The objects below a URL: `s3://BUCKET/PREFIX` or `file:///DIRECTORY`.

    The credentials and the region of S3 come from the environment and the files that Amazon's tools use; the parameter
    `endpoint` selects another server than Amazon's.
    """

    def __init__(self, url: str) -> None:
        """Prepare access, without connecting. Raises ObjectStoreError, and ImportError without fsspec or s3fs."""
        self._root, options = _parsed(url)
        self.name = one_line(self._root)
        import fsspec

        self._system, self._path = fsspec.core.url_to_fs(self._root, use_listings_cache=False, **options)
        self._path = self._path.rstrip("/")

    def objects(self, folder: str = "") -> list[StoredObject]:
        """Return all objects, or those whose keys begin with `folder/`, sorted by key. Raises ObjectStoreError."""
        path = f"{self._path}/{folder}".rstrip("/")
        with self._errors(folder):
            entries: dict[str, dict[str, Any]] = self._system.find(path, detail=True)
        keys = ((name[len(self._path) + 1 :], entry) for name, entry in entries.items())
        return sorted(
            (StoredObject(key, int(entry["size"])) for key, entry in keys if key), key=lambda stored: stored.key
        )

    def chunks(self, key: str) -> Iterator[bytes]:
        """Yield an object's content in parts of at most CHUNK_BYTES. Raises ObjectStoreError."""
        with self._errors(key), self._system.open(f"{self._path}/{key}", "rb", block_size=CHUNK_BYTES) as source:
            while chunk := source.read(CHUNK_BYTES):
                yield chunk

    def read(self, key: str, max_bytes: int = MAX_READ_BYTES) -> bytes:
        """Return an object's content. Raises ObjectStoreError, also if it is larger than `max_bytes`."""
        content = bytearray()
        for chunk in self.chunks(key):
            content += chunk
            if len(content) > max_bytes:
                raise ObjectStoreError(f"{self.name}/{one_line(key)}: larger than {max_bytes >> 20} MiB")
        return bytes(content)

    def write(self, key: str, content: bytes) -> None:
        """Write an object atomically, and verify what the store returns for it. Raises ObjectStoreError."""
        with self._errors(key), self._system.transaction:
            self._system.pipe_file(f"{self._path}/{key}", content)
        self._verify(key, sha256(content).digest())

    def write_file(self, key: str, path: Path) -> int:
        """Write a file's content as `write` does, and return its size. Raises ObjectStoreError and OSError."""
        written, size_bytes = sha256(), 0
        with (
            path.open("rb") as source,
            self._errors(key),
            self._system.transaction,
            self._system.open(f"{self._path}/{key}", "wb", block_size=CHUNK_BYTES) as target,
        ):
            for chunk in _chunks_of(source):
                target.write(chunk)
                written.update(chunk)
                size_bytes += len(chunk)
        self._verify(key, written.digest())
        return size_bytes

    def contains(self, key: str, path: Path) -> bool:
        """Return whether an object exists and has the same content as a file. Raises ObjectStoreError and OSError."""
        with path.open("rb") as file:
            try:
                return all(file.read(len(chunk)) == chunk for chunk in self.chunks(key)) and not file.read(1)
            except ObjectMissingError:
                return False

    def _verify(self, key: str, expected: bytes) -> None:
        """Raise ObjectStoreError if an object has another SHA-256 digest."""
        returned = sha256()
        for chunk in self.chunks(key):
            returned.update(chunk)
        if returned.digest() != expected:
            raise ObjectStoreError(f"{self.name}/{one_line(key)}: the store returned other content than was uploaded")

    @contextmanager
    def _errors(self, key: str) -> Iterator[None]:
        """Convert the errors of the client library to ObjectStoreError."""
        name = f"{self.name}/{one_line(key)}".rstrip("/")
        try:
            yield
        except _ReadError as error:
            raise error.reason from None
        except FileNotFoundError:
            raise ObjectMissingError(f"{name}: no such object or bucket") from None
        except PermissionError as error:
            hint = "check the permissions and the credentials, such as AWS_ACCESS_KEY_ID"
            raise ObjectStoreError(f"{name}: access denied: {_reason(error)} (hint: {hint})") from None
        except Exception as error:
            # The client libraries raise errors of many unrelated types.
            raise ObjectStoreError(f"{name}: {_reason(error)}") from None


def _chunks_of(source: BinaryIO) -> Iterator[bytes]:
    """Yield a local file's content in parts of at most CHUNK_BYTES. Raises _ReadError."""
    try:
        while chunk := source.read(CHUNK_BYTES):
            yield chunk
    except OSError as error:
        raise _ReadError(error) from None


def _parsed(url: str) -> tuple[str, dict[str, Any]]:
    """Return a URL without its parameters, and the options of the file system. Raises ObjectStoreError."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ObjectStoreError(f"{one_line(url)}: not a valid URL (hint: use s3://BUCKET/PREFIX)") from None
    if parts.scheme not in PACKAGES:
        raise ObjectStoreError(f"{one_line(parts.scheme)}://: unknown object storage (hint: use s3:// or file://)")
    if "@" in parts.netloc:
        raise ObjectStoreError(
            f"{parts.scheme}://…: a user name and password in a URL are visible to other users"
            " (hint: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)"
        )
    path = unquote(parts.path).rstrip("/")
    root = f"{parts.scheme}://{parts.netloc}{path}"
    parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
    endpoint = parameters.pop(ENDPOINT, None)
    if parameters or parts.fragment or (endpoint is not None and parts.scheme != S3):
        raise ObjectStoreError(f"{one_line(root)}: unknown parameter (hint: s3:// accepts {ENDPOINT}=URL)")
    if parts.scheme == FILE:
        if parts.netloc or not path:
            raise ObjectStoreError(f"{one_line(root)}: not an absolute path (hint: use file:///DIRECTORY)")
        return root, {"auto_mkdir": True}
    if not parts.netloc:
        raise ObjectStoreError("s3://: no bucket (hint: use s3://BUCKET/PREFIX)")
    retries = {"max_attempts": ATTEMPTS, "mode": "standard"}
    config = {"connect_timeout": CONNECT_S, "read_timeout": READ_S, "retries": retries}
    return root, {"endpoint_url": endpoint, "config_kwargs": config, "skip_instance_cache": True}


def _reason(error: Exception) -> str:
    return one_line(error) or type(error).__name__


KEY = re.compile(
    rf"(?:(?P<node>[^/]+)/)?(?P<file>[^/]+{re.escape(SUFFIX)})/(?P<offset>\d{{12}})-(?P<begin_ms>\d{{1,15}})\.zst"
)
MS = 1000


@dataclass(frozen=True)
class Part:
    """A part in object storage.

    node     the directory of the node; "" if the URL is that of one node.
    file     the name of the journal's file.
    offset   its position in the file in bytes.
    begin_s  the time of its first tick; 0 if it is unknown.
    """

    node: str
    file: str
    offset: int
    begin_s: float
    stored: StoredObject


def part_key(file: str, offset: int, begin_s: float) -> str:
    """Return the key of a part, relative to its node."""
    return f"{file}/{offset:012d}-{round(max(begin_s, 0.0) * MS):013d}.zst"


def parts_of(objects: Iterable[StoredObject]) -> dict[tuple[str, str], list[Part]]:
    """Return the parts among objects by node and file, both in order, each file's by offset.

    Of several parts at the same offset, only the largest is returned.
    """
    by_file: dict[tuple[str, str], dict[int, Part]] = {}
    for stored in objects:
        if match := KEY.fullmatch(stored.key):
            part = Part(match["node"] or "", match["file"], int(match["offset"]), int(match["begin_ms"]) / MS, stored)
            parts = by_file.setdefault((part.node, part.file), {})
            other = parts.get(part.offset)
            if other is None or other.stored.size_bytes < stored.size_bytes:
                parts[part.offset] = part
    names = sorted(by_file, key=lambda name: (name[0], sort_key(Path(name[1]))))
    return {name: [by_file[name][offset] for offset in sorted(by_file[name])] for name in names}

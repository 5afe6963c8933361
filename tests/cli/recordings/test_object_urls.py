"""Commands give the same output for recordings in object storage as for local ones."""

import signal
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from shutil import copytree
from typing import Any

import fsspec
import pytest
from botocore.loaders import JSONFileLoader

from cli.runs import fetch_program
from collector.recording.object_store import ObjectStore
from collector.runs.run import Run, RunNode
from collector.runs.run_file import write_run
from tests.cli.recordings.conftest import Run as RunCasstat
from tests.collector.merge.recorded_nodes import BEGIN_S, busy, record
from tests.every import every
from tests.examples import thorough
from tests.faults.program import is_clean
from tests.s3_server import S3Server

pytestmark = thorough

PART_S = 30


@pytest.fixture(scope="module")
def system() -> Iterator[Any]:
    """The file system of an S3 server, to which the environment refers."""
    server = S3Server()
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.environ.items():
            patch.setenv(name, value)
        # Otherwise, each client reads the same descriptions of services.
        load = cache(JSONFileLoader().load_file)
        patch.setattr(JSONFileLoader, "load_file", lambda _, path: load(path))
        yield fsspec.filesystem("s3", skip_instance_cache=True)
    server.stop()


BUCKET_NUMBERS = count()


@pytest.fixture
def bucket(system: Any) -> str:
    """Return the URL of an empty bucket."""
    name = f"bucket{next(BUCKET_NUMBERS)}"
    system.mkdir(name)
    return f"s3://{name}"


@pytest.fixture(params=["file", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    store: str = f"file://{tmp_path}/store" if request.param == "file" else request.getfixturevalue("bucket")
    return store


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recordings")
    for node, reads in (("a", 10), ("b", 20)):
        ticks = busy(node, 3 * PART_S, lambda tick, reads=reads: (500 + tick,) * reads)  # type: ignore[misc]
        record(folder / node, ticks, full_every=6)
    return folder


@pytest.fixture
def rec(recordings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Recordings of two nodes in the current directory; each is uploaded in three parts."""
    monkeypatch.setattr("collector.recording.journal_upload.PART_S", PART_S)
    return copytree(recordings, tmp_path / "rec")


def printed(run: RunCasstat, *arguments: str) -> str:
    code, out, errors = run(*arguments)
    assert (code, errors) == (0, ""), errors
    return out


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_recordings_are_uploaded_once_and_their_merge_is_the_same(
    run: RunCasstat, rec: Path, url: str, tmp_path: Path
) -> None:
    assert printed(run, "upload", "rec", f"{url}/rec").startswith(f"{url}/rec: uploaded 6 objects, ")
    assert printed(run, "upload", "rec", f"{url}/rec") == f"{url}/rec: uploaded 0 objects, 0 bytes\n"
    part = ("--from", str(BEGIN_S + 65.0), "--until", str(BEGIN_S + 75.0))
    for name, limits in (("all", ()), ("part", part)):
        printed(run, "merge", "rec", "-o", f"local/{name}", *limits)
        printed(run, "merge", f"{url}/rec", "-o", f"stored/{name}", *limits)
    assert contents(tmp_path / "stored") == contents(tmp_path / "local")
    out = printed(run, "merge", "rec", "-o", f"{url}/out")
    assert out.splitlines()[:2] == [f"{url}/out/{name}" for name in ("rows.tsv", "rows.csv")]
    assert len(out.splitlines()) == len(contents(tmp_path / "local" / "all"))
    assert fsspec.open(f"{url}/out/rows.tsv").open().read() == (tmp_path / "local" / "all" / "rows.tsv").read_bytes()


def test_a_node_is_uploaded_once_and_replayed(run: RunCasstat, rec: Path, url: str) -> None:
    assert printed(run, "upload", "rec/a", url).startswith(f"{url}: uploaded 3 objects, ")
    assert printed(run, "upload", "rec/a", url) == f"{url}: uploaded 0 objects, 0 bytes\n"
    local = printed(run, "replay", "rec/a", "--format", "json")
    assert printed(run, "replay", url, "--format", "json") == local
    assert printed(run, "replay", f"{url}/a", "--format", "json") == local


def test_nothing_is_left_of_a_fetch_that_is_interrupted(
    run: RunCasstat, rec: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed(run, "upload", "rec", f"{url}/rec")
    arguments = ("fetch", f"{url}/rec", "--from", str(BEGIN_S), "--until", str(BEGIN_S + 30), "-o", "out")
    with monkeypatch.context() as patch:
        # The recordings have been downloaded, and the ticks of the first node are counted.
        patch.setattr(fetch_program, "_node", lambda *_: signal.raise_signal(signal.SIGINT))
        assert run(*arguments) == (130, "", "")
    assert not (tmp_path / "out").exists()
    code, out, errors = run(*arguments)
    assert (code, errors) == (0, "")
    assert out.startswith("a: 31 ticks")


# The other tests use S3 as well.
@pytest.mark.parametrize("url", ["file", "s3"], indirect=True)
def test_a_run_is_listed_and_shown(run: RunCasstat, tmp_path: Path, url: str) -> None:
    record(tmp_path / "mixed" / "nodes" / "a", busy("a", 30))
    write_run(
        tmp_path / "mixed",
        Run("mixed", BEGIN_S + 5, BEGIN_S + 25, "1", nodes=(RunNode("a", "a", "nodes/a", ticks=20),)),
    )
    printed(run, "upload", "mixed", f"{url}/runs")
    assert printed(run, "runs", f"{url}/runs").splitlines()[1].endswith(f"{url}/runs/mixed")
    assert printed(run, "runs", "show", f"{url}/runs/mixed") == printed(run, "runs", "show", "mixed")
    printed(run, "merge", "mixed", "-o", "local")
    printed(run, "merge", f"{url}/runs/mixed", "-o", "stored")
    assert contents(tmp_path / "stored") == contents(tmp_path / "local")
    code, _, errors = run("merge", f"{url}/runs", "-o", "out")
    assert (code, errors) == (
        1,
        f"casstat: {url}/runs: contains runs (hint: use one of them, such as {url}/runs/mixed)\n",
    )


@every("words", [("merge", "-o", "out"), ("plot", "-o", "out"), ("replay",), ("report",)])
def test_a_missing_bucket_is_one_clear_message(run: RunCasstat, bucket: str, words: tuple[str, ...]) -> None:
    for missing in ("s3://missing/x", f"{bucket}/missing"):
        code, out, errors = run(words[0], missing, *words[1:])
        assert (code, out) == (1, "")
        assert errors in (
            f"casstat: {missing}: no recordings found\n",
            f"casstat: {missing}: no such object or bucket\n",
        )


def test_an_unreachable_server_is_one_clear_message(
    run: RunCasstat, rec: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.recording.object_store.CONNECT_S", 1)
    code, _, errors = run("upload", "rec", f"{bucket}/x?endpoint=http://127.0.0.1:9")
    assert code == 1
    assert is_clean(errors)
    assert errors.startswith(f"casstat: {bucket}/x/a: ")
    assert "127.0.0.1:9" in errors


@every(
    "url, message",
    [
        ("s3://", "s3://: no bucket (hint: use s3://BUCKET/PREFIX)"),
        ("s3://key:secret@bucket/x", "s3://…: a user name and password in a URL are visible to other users (hint: set"),
        ("s3://bucket/x?token=secret", "s3://bucket/x: unknown parameter (hint: s3:// accepts endpoint=URL)"),
        ("file://relative/x", "file://relative/x: not an absolute path (hint: use file:///DIRECTORY)"),
    ],
)
def test_invalid_urls_are_errors_without_secrets(run: RunCasstat, rec: Path, url: str, message: str) -> None:
    for words in (("upload", "rec", url), ("merge", url, "-o", "out"), ("agent", "--to", url)):
        code, _, errors = run(*words)
        assert code == 1
        assert message in errors
        assert "secret" not in errors


def test_a_file_larger_than_a_request_is_the_same(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # S3 accepts no smaller requests, except the last one of a file.
    chunk_bytes = 5 << 20
    monkeypatch.setattr("collector.recording.object_store.CHUNK_BYTES", chunk_bytes)
    path = tmp_path / "large"
    path.write_bytes(bytes(range(256)) * ((2 * chunk_bytes + 1000) // 256))
    store = ObjectStore(url)
    assert store.write_file("large", path) == path.stat().st_size
    assert store.contains("large", path)
    path.write_bytes(b"")
    store.write_file("empty", path)
    assert store.read("empty") == b""

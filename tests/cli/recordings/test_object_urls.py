"""Commands give the same output for recordings in object storage as for local ones."""

from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from collector.recording.object_store import CHUNK_BYTES, ObjectStore
from collector.runs.run import Run, RunNode
from collector.runs.run_file import write_run
from tests.cli.recordings.conftest import Run as RunCasstat
from tests.collector.merge.recorded_nodes import BEGIN_S, busy, record
from tests.faults.program import is_clean
from tests.s3_server import S3Server

BUCKET = "bucket"


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    server = S3Server()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def bucket(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the URL of an empty bucket."""
    for name, value in s3.environ.items():
        monkeypatch.setenv(name, value)
    system = fsspec.filesystem("s3", skip_instance_cache=True)
    system.mkdir(BUCKET)
    yield f"s3://{BUCKET}"
    system.rm(BUCKET, recursive=True)


@pytest.fixture(params=["file", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"file://{tmp_path}/store" if request.param == "file" else request.getfixturevalue("bucket")


@pytest.fixture
def rec(tmp_path: Path) -> Path:
    for node, reads in (("a", 10), ("b", 20)):
        # Long enough for several parts.
        record(tmp_path / "rec" / node, busy(node, 900, lambda tick, reads=reads: (500 + tick,) * reads), full_every=60)  # type: ignore[misc]
    return tmp_path / "rec"


def printed(run: RunCasstat, *arguments: str) -> str:
    code, out, errors = run(*arguments)
    assert (code, errors) == (0, ""), errors
    return out


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("limits", [(), ("--from", str(BEGIN_S + 700.0), "--until", str(BEGIN_S + 800.0))])
def test_a_merge_is_the_same(run: RunCasstat, rec: Path, url: str, tmp_path: Path, limits: tuple[str, ...]) -> None:
    assert printed(run, "upload", "rec", f"{url}/rec").startswith(f"{url}/rec: uploaded 6 objects, ")
    printed(run, "merge", "rec", "-o", "local", *limits)
    printed(run, "merge", f"{url}/rec", "-o", "stored", *limits)
    assert contents(tmp_path / "stored") == contents(tmp_path / "local")


def test_nothing_is_uploaded_twice(run: RunCasstat, rec: Path, url: str) -> None:
    printed(run, "upload", "rec", url)
    assert printed(run, "upload", "rec", url) == f"{url}: uploaded 0 objects, 0 bytes\n"


def test_a_node_is_replayed(run: RunCasstat, rec: Path, url: str) -> None:
    printed(run, "upload", "rec/a", url)
    local = printed(run, "replay", "rec/a", "--format", "json")
    assert printed(run, "replay", url, "--format", "json") == local
    assert printed(run, "replay", f"{url}/a", "--format", "json") == local


def test_tables_are_written_to_object_storage(run: RunCasstat, rec: Path, url: str, tmp_path: Path) -> None:
    printed(run, "merge", "rec", "-o", "local")
    out = printed(run, "merge", "rec", "-o", f"{url}/out")
    assert out.splitlines()[:2] == [f"{url}/out/{name}" for name in ("rows.tsv", "rows.csv")]
    assert len(out.splitlines()) == len(contents(tmp_path / "local"))
    assert fsspec.open(f"{url}/out/rows.tsv").open().read() == (tmp_path / "local" / "rows.tsv").read_bytes()


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


@pytest.mark.parametrize("words", [("merge", "-o", "out"), ("plot", "-o", "out"), ("replay",), ("report",)])
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
    assert errors.startswith("casstat: s3://bucket/x/a: ")
    assert "127.0.0.1:9" in errors


@pytest.mark.parametrize(
    ("url", "message"),
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


def test_a_file_larger_than_a_request_is_the_same(url: str, tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(bytes(range(256)) * ((2 * CHUNK_BYTES + 1000) // 256))
    store = ObjectStore(url)
    assert store.write_file("large", path) == path.stat().st_size
    assert store.contains("large", path)
    path.write_bytes(b"")
    store.write_file("empty", path)
    assert store.read("empty") == b""

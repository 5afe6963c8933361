"""A merge on a cluster gives the same files as a local one, even if a worker dies."""

import re
import signal
import threading
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from distributed import Client

from cli.errors import CasstatError
from cli.parameters.recording_options import ObjectUrl
from cli.recordings import merge_cluster
from cli.recordings.merge_cluster import on_cluster, worker_problem
from cli.recordings.merge_program import merge_into
from cli.recordings.recording_arguments import MergeSettings
from tests.collector.merge.recorded_nodes import BEGIN_S, busy, record
from tests.dask_cluster import DaskCluster, dask_cluster
from tests.faults.program import is_clean, run
from tests.waiting import eventually

NODES, TICKS = 20, 60


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    with dask_cluster(tmp_path_factory.mktemp("dask"), 2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def rec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the recordings of more nodes than one task merges."""
    folder = tmp_path_factory.mktemp("recorded") / "rec"
    for number in range(NODES):
        reads = [100 + number, 900 + 37 * number]
        record(folder / f"n{number}", busy(f"n{number}", TICKS, lambda tick, reads=reads: reads * (1 + tick % 3)))  # type: ignore[misc]
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "limits", [("--series",), ("--from", str(BEGIN_S + 10), "--until", str(BEGIN_S + 40), "-i", "1")]
)
def test_the_files_are_the_same(cluster: DaskCluster, rec: Path, tmp_path: Path, limits: tuple[str, ...]) -> None:
    url = f"file://{tmp_path}/store/rec"
    assert run("upload", str(rec), url).returncode == 0
    for name, *words in (
        ("local", str(rec)),
        *((f"{n}", p, "--scheduler", cluster.address) for n, p in (("shared", str(rec)), ("stored", url))),
    ):
        ended = run("merge", *words, "-o", str(tmp_path / name), *limits)
        assert (ended.returncode, ended.stderr) == (0, "")
    local = contents(tmp_path / "local")
    assert local["rows.tsv"].count(b"\n") > NODES
    assert sum(name.startswith("values/") for name in local) == ("--series" in limits) * NODES
    assert contents(tmp_path / "shared") == local
    assert contents(tmp_path / "stored") == local


def test_the_tasks_of_a_worker_that_dies_run_on_another_one(rec: Path, tmp_path: Path) -> None:
    merge_into(MergeSettings((rec,)), tmp_path / "local")
    with (
        dask_cluster(tmp_path, 1) as cluster,
        on_cluster(MergeSettings((rec,)), cluster.address) as (settings, merging),
    ):
        # The worker takes tasks, but never completes them.
        cluster.workers[0].send_signal(signal.SIGSTOP)
        thread = threading.Thread(
            target=merge_into, args=(settings, tmp_path / "merged"), kwargs={"cluster": merging}, daemon=True
        )
        thread.start()
        with Client(cluster.address, set_as_default=False) as client:  # type: ignore[no-untyped-call]
            eventually(lambda: any(client.processing().values()))
            cluster.add_worker()
            client.wait_for_workers(2, timeout=60)
        cluster.workers[0].send_signal(signal.SIGKILL)
        thread.join(60)
        assert not thread.is_alive()
    assert contents(tmp_path / "merged") == contents(tmp_path / "local")


def test_unusable_clusters_are_one_clear_message(cluster: DaskCluster, rec: Path, tmp_path: Path) -> None:
    url = ObjectUrl(f"file://{tmp_path}/missing")
    for words, message in (
        ((str(rec), "--scheduler", "tcp://127.0.0.1:9"), "tcp://127.0.0.1:9: cannot connect to a scheduler: "),
        ((str(rec), "--scheduler", "nonsense"), "'nonsense' is not an address (hint: use tcp://HOST:8786)"),
        ((url, "--scheduler", cluster.address), f"{url}: no recordings found"),
        (
            (str(tmp_path / "missing"), "--scheduler", cluster.address),
            "cannot read it (hint: use a shared directory or S3)",
        ),
    ):
        ended = run("merge", *words, "-o", str(tmp_path / "out"))
        assert ended.returncode == (2 if "nonsense" in words else 1)
        assert message in ended.stderr
        assert is_clean(ended.stderr) or ended.returncode == 2


class Workers:
    """A client whose workers have these versions of casstat and of numpy; "" if a worker lacks it."""

    def __init__(self, *versions: str, numpy: str = "2.0") -> None:
        self.versions = {"casstat": versions, "numpy": len(versions) * [numpy], "orjson": len(versions) * ["3.9"]}

    def run(self, _: object, name: str, *, on_error: str) -> dict[str, object]:
        assert on_error == "return"
        texts = enumerate(self.versions[name])
        return {f"tcp://10.0.0.{number}:1": text or PackageNotFoundError(name) for number, text in texts}


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        (
            ["0.0.9", version("casstat")],
            "1 worker with another version of casstat than .*: tcp://10.0.0.0:1 has 0.0.9",
        ),
        (["0.0.9", "0.0.9"], "2 workers with another version of casstat.*"),
        ([version("casstat"), ""], "1 worker without the package casstat: tcp://10.0.0.1:1"),
        ([], "the scheduler has no workers"),
    ],
)
def test_workers_have_the_same_version(versions: list[str], message: str) -> None:
    assert worker_problem(Workers(version("casstat"))) == ""
    assert re.fullmatch(message, worker_problem(Workers(*versions)))


def test_workers_have_the_packages_of_the_merge() -> None:
    workers = Workers(version("casstat"), version("casstat"), numpy="")
    assert worker_problem(workers) == "2 workers without the package numpy: tcp://10.0.0.0:1"


@pytest.mark.parametrize("is_scheduler", [False, True])
def test_a_merge_ends_if_the_last_worker_or_the_scheduler_dies(
    rec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_scheduler: bool
) -> None:
    monkeypatch.setattr(merge_cluster, "WITHOUT_WORKERS_S", 2.0)
    raised: list[str] = []

    def merge(cluster: DaskCluster) -> None:
        try:
            with on_cluster(MergeSettings((rec,)), cluster.address) as (settings, merging):
                # The worker takes tasks, but never completes them.
                cluster.workers[0].send_signal(signal.SIGSTOP)
                merge_into(settings, tmp_path / "merged", cluster=merging)
        except CasstatError as error:
            raised.append(str(error))

    with dask_cluster(tmp_path, 1) as cluster:
        with Client(cluster.address, set_as_default=False) as client:  # type: ignore[no-untyped-call]
            thread = threading.Thread(target=merge, args=(cluster,), daemon=True)
            thread.start()
            eventually(lambda: any(client.processing().values()))
        (cluster.scheduler if is_scheduler else cluster.workers[0]).send_signal(signal.SIGKILL)
        thread.join(120)
        assert not thread.is_alive()
    (message,) = raised
    expected = (
        "the (scheduler does not answer|cluster failed): " if is_scheduler else "the scheduler has had no workers for"
    )
    assert re.match(f"{cluster.address}: {expected}", message)


def test_a_cluster_without_workers_is_an_error(rec: Path, tmp_path: Path) -> None:
    with dask_cluster(tmp_path, 0) as cluster:
        ended = run("merge", str(rec), "--scheduler", cluster.address, "-o", str(tmp_path / "out"))
    assert (ended.returncode, ended.stderr) == (1, f"casstat: {cluster.address}: the scheduler has no workers\n")

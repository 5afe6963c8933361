"""Recording through the real program while the disk, another recorder or the node misbehave."""

import json
import resource
from pathlib import Path

import pytest

from collector.journal.reader import entries, read
from tests.collector.cluster.recorded_nodes import both, busy, cluster_reads, reads_of, record
from tests.faults.fake_jolokia import FakeJolokia
from tests.faults.fake_node import Json
from tests.faults.program import Load, Program, has_reads, is_clean, run

LAST_BYTES = 1024


def test_a_second_recorder_of_a_node_is_refused(fake: FakeJolokia, tmp_path: Path) -> None:
    with Program("0.2", "--format=json", "--jolokia", fake.url, "-w", str(tmp_path)) as first:
        first.row()
        second = run("0.2", "3", "--jolokia", fake.url, "-w", str(tmp_path))
        assert second.returncode == 1
        assert second.stdout == ""
        assert second.stderr.splitlines()[-1].endswith(
            "another casstat is recording there; hint: choose another folder"
        )
        assert is_clean(second.stderr)
        # Another node may be recorded beside it.
        assert run("0.2", "3", "--jolokia", fake.url, "-w", str(tmp_path), "--node", "other").returncode == 0
        first.row()
        assert first.end()[0] == 0
    assert len(list(tmp_path.glob("*/*.zst"))) == 2
    assert run("0.2", "2", "--jolokia", fake.url, "-w", str(tmp_path)).returncode == 0


def test_on_a_full_disk_the_line_goes_on(fake: FakeJolokia, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file may grow beyond a few kilobytes, as where the disk is full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2800, limits[1]))
    try:
        program = Program("0.2", "--format=json", "--jolokia", fake.url, "-w", str(tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with program:
        load = Load(program, fake.node)
        for _ in range(25):
            load.next()
        load.settle()
        load.check()
        rows = len(load.rows)
        code, errors = program.end()
        rows += len(program.unread_lines())
    assert code == 0
    assert is_clean(errors)
    said = [line for line in errors.splitlines() if "File too large" in line]
    assert len(said) == 1
    lost = int(errors.splitlines()[-1].split(": ")[-1].split()[0])
    (file,) = tmp_path.glob("*/*.zst")
    assert len(list(entries(read(file)))) + lost == rows + 1
    # There was no room for the footer either.
    checked = run("journal", "check", str(tmp_path))
    assert (checked.returncode, checked.stdout.splitlines()[-1].endswith(": no footer")) == (1, True)


@pytest.mark.parametrize(
    "number", ["NaN", "1e999", "-1e999", str(10**30), str(10**400), '"\\ud800"', "[" * 9 + "]" * 9]
)
def test_whatever_a_node_says_is_recorded_or_left_out(fake: FakeJolokia, tmp_path: Path, number: str) -> None:
    def override(request: Json, answer: Json) -> Json:
        if "Compaction,name=PendingTasks" in request.get("mbean", "") or "PendingTasks" in json.dumps(request):
            value = json.loads(number)
            return {**answer, "value": {"Value": value} if isinstance(answer.get("value"), dict) else value}
        return answer

    fake.node.override = override
    with Program("0.2", "--format=json", "--jolokia", fake.url, "-w", str(tmp_path)) as program:
        load = Load(program, fake.node)
        for _ in range(5):
            load.next()
        load.until(has_reads)
        code, errors = program.end()
    assert code == 0
    assert is_clean(errors)
    assert run("journal", "check", str(tmp_path)).returncode == 0
    assert run("merge", str(tmp_path), "-o", str(tmp_path / "out"), "--interval", "0.2").returncode == 0


@pytest.mark.parametrize("name", ["../..", "..", "a\nb\t\x1b[31m", "\udcff", "x" * 9999])
def test_a_node_of_any_name_is_recorded_inside(fake: FakeJolokia, tmp_path: Path, name: str) -> None:
    into = tmp_path / "a" / "b"
    done = run("0.2", "3", "--jolokia", fake.url, "-w", str(into), "--node", name)
    assert (done.returncode, is_clean(done.stderr)) == (0, True)
    assert [path.parent.parent for path in tmp_path.glob("**/*.zst")] == [into]
    assert run("merge", str(into), "-o", str(tmp_path / "out"), "--interval", "0.2").returncode == 0


def test_cut_at_every_byte_of_the_end_the_sums_are_those_of_what_remains(tmp_path: Path) -> None:
    spoilt, other = (record(tmp_path / name, busy(name, 23)) for name in ("a", "b"))
    (file,) = spoilt.glob("*.zst")
    whole = file.read_bytes()
    for place in range(LAST_BYTES):
        file.write_bytes(whole[: len(whole) - place])
        merged, _ = both(spoilt, other)
        told = [each for node in merged.nodes for each in reads_of(node.product).values()]
        assert all(increase == pytest.approx(10 * covers_s) for increase, covers_s in told)
        assert sum(increase for increase, _ in cluster_reads(merged).values()) == sum(increase for increase, _ in told)

"""Recording with the real program when the disk is full, another recorder is running, or the node is faulty."""

import json
import resource
import signal
import time
from pathlib import Path

import pytest

from collector.recording.frames import last_footer
from collector.recording.reader import entries, read, read_lines
from tests.collector.merge.recorded_nodes import busy, cluster_reads, merge_both, reads_of, record
from tests.faults.fake_jolokia import FakeJolokia
from tests.faults.fake_node import Json
from tests.faults.program import Load, Program, has_reads, is_clean, run

LAST_BYTES = 1024


def test_a_second_recorder_of_the_same_node_is_refused(fake: FakeJolokia, tmp_path: Path) -> None:
    with Program("0.2", "--format=json", "--jolokia", fake.url, "-w", str(tmp_path)) as first:
        first.row()
        second = run("0.2", "3", "--jolokia", fake.url, "-w", str(tmp_path))
        assert second.returncode == 1
        assert second.stdout == ""
        assert second.stderr.splitlines()[-1].endswith(
            "another casstat is recording to this directory (hint: choose another directory)"
        )
        assert is_clean(second.stderr)
        # Recording another node to the same directory is allowed.
        assert run("0.2", "3", "--jolokia", fake.url, "-w", str(tmp_path), "--node", "other").returncode == 0
        first.row()
        assert first.end()[0] == 0
    assert len(list(tmp_path.glob("*/*.zst"))) == 2
    assert run("0.2", "2", "--jolokia", fake.url, "-w", str(tmp_path)).returncode == 0


def test_a_second_sigterm_does_not_prevent_the_footer(fake: FakeJolokia, tmp_path: Path) -> None:
    """`timeout` delivers every signal twice: to the process and to its process group."""
    with Program("0.2", "--format=json", "--jolokia", fake.url, "-w", str(tmp_path)) as program:
        for _ in range(3):
            program.row()
        while program.alive:
            program.send(signal.SIGTERM)
            time.sleep(0.002)
        code, errors = program.end(None)
    assert (code, is_clean(errors)) == (0, True)
    check = run("journal", "check", str(tmp_path))
    assert check.stdout.splitlines()[-1].endswith(": complete")


def test_on_a_full_disk_the_rows_continue(fake: FakeJolokia, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on the file size stands in for a full disk."""
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
    messages = [line for line in errors.splitlines() if "File too large" in line]
    assert len(messages) == 1
    lost = int(errors.splitlines()[-1].split(": ")[-1].split()[0])
    (file,) = tmp_path.glob("*/*.zst")
    assert len(list(entries(read(file)))) + lost == rows + 1
    # The footer could not be written either.
    check = run("journal", "check", str(tmp_path))
    assert (check.returncode, check.stdout.splitlines()[-1].endswith(": no footer")) == (1, True)


@pytest.mark.parametrize(
    "number", ["NaN", "1e999", "-1e999", str(10**30), str(10**400), '"\\ud800"', "[" * 9 + "]" * 9]
)
def test_a_nodes_malformed_values_are_recorded_or_left_out(fake: FakeJolokia, tmp_path: Path, number: str) -> None:
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
def test_any_node_name_is_recorded_inside_the_directory(fake: FakeJolokia, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "a" / "b"
    result = run("0.2", "3", "--jolokia", fake.url, "-w", str(folder), "--node", name)
    assert (result.returncode, is_clean(result.stderr)) == (0, True)
    assert [path.parent.parent for path in tmp_path.glob("**/*.zst")] == [folder]
    assert run("merge", str(folder), "-o", str(tmp_path / "out"), "--interval", "0.2").returncode == 0


def test_sums_of_a_truncated_recording_match_its_remaining_rows(tmp_path: Path) -> None:
    truncated, other = (record(tmp_path / name, busy(name, 23)) for name in ("a", "b"))
    (file,) = truncated.glob("*.zst")
    content = file.read_bytes()
    seen = set()
    for removed_bytes in range(LAST_BYTES):
        file.write_bytes(content[: len(content) - removed_bytes])
        # Most cuts within a frame leave the same records.
        if (left := repr((list(read_lines(file)), last_footer(file)))) in seen:
            continue
        seen.add(left)
        merged, _ = merge_both(truncated, other)
        reads = [values for node in merged.nodes for values in reads_of(node.product).values()]
        assert reads
        assert all(increase == pytest.approx(10 * covers_s) for increase, covers_s in reads)
        assert sum(increase for increase, _ in cluster_reads(merged).values()) == sum(increase for increase, _ in reads)

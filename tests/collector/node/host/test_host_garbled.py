"""Reading truncated or garbled kernel files raises no exception other than SourceError."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model.metric import Kind, Values
from collector.model.snapshot import SourceError
from collector.node.catalogue import HOST
from collector.node.host.host_source import HostSource
from collector.node.host.kernel_files import Host
from tests.collector import captures
from tests.collector.fakes import FakeClock
from tests.every import every

PARTS = {part.name: part for part in HOST}
SERVICE = "sys/fs/cgroup/system.slice/cassandra.service"
FILES = [
    ("cpu", 4242, "proc/stat"),
    ("disk", 4242, "proc/diskstats"),
    ("network", 4242, "proc/self/net/dev"),
    ("network", 4242, "proc/self/net/snmp"),
    ("memory", 4242, "proc/meminfo"),
    ("pressure", 4242, "proc/pressure/cpu"),
    ("pressure", 4242, "proc/pressure/io"),
    ("process", 4242, "proc/4242/stat"),
    ("cgroup", 4242, "proc/4242/cgroup"),
    ("cgroup", 4242, f"{SERVICE}/cgroup.procs"),
    ("cgroup", 4242, f"{SERVICE}/memory.max"),
    ("cgroup", 4242, f"{SERVICE}/cpu.max"),
    ("cgroup", 4242, f"{SERVICE}/cpu.stat"),
    ("cgroup", 4243, "proc/4243/cgroup"),
    ("cgroup", 4243, "sys/fs/cgroup/memory/cassandra/memory.limit_in_bytes"),
    ("cgroup", 4243, "sys/fs/cgroup/cpu/cassandra/cpu.cfs_period_us"),
    ("cgroup", 4243, "sys/fs/cgroup/cpu/cassandra/cpu.stat"),
]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the captured file tree."""
    return Path(shutil.copytree(captures.HOST, tmp_path_factory.mktemp("machine") / "root"))


@contextmanager
def replaced(path: Path, content: bytes) -> Iterator[None]:
    original = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(original)


def read(name: str, root: Path, pid: int) -> Values | None:
    """Return the source's values, or None if reading raises a SourceError."""
    try:
        return dict(HostSource(PARTS[name], lambda: Host(root, pid), FakeClock()).read(1.0).values)
    except SourceError as error:
        message = str(error)
    assert len(message.splitlines()) == 1
    return None


def sound(name: str, values: Values | None) -> bool:
    """Return whether every series has as many labels as its metric, and every value has the type of its metric."""
    metrics = {metric.name: metric for metric in PARTS[name].metrics}
    return all(
        len(series) == 1 + len(metrics[series[0]].labels)
        and isinstance(value, str if metrics[series[0]].kind == Kind.TEXT else int | float)
        for series, value in (values or {}).items()
    )


noise = st.one_of(
    st.binary(max_size=6),
    st.text("0123456789 -:.=\n\tkBmax²٣", max_size=6).map(str.encode),
    st.sampled_from(
        (b"0", b" 0 ", b"0\n", b"\n", b"\n\n", b":", b"=", b"nan", b"inf", b"1e9", b"-1", b"9" * 30, b"\0")
    ),
)


@pytest.mark.parametrize(("name", "pid", "file"), FILES, ids=lambda value: str(value).replace("/", "."))
@given(cut=st.floats(0, 1))
def test_a_truncated_file_raises_only_source_errors(machine: Path, name: str, pid: int, file: str, cut: float) -> None:
    content = (machine / file).read_bytes()
    with replaced(machine / file, content[: round(cut * len(content))]):
        assert sound(name, read(name, machine, pid))


@pytest.mark.parametrize(("name", "pid", "file"), FILES, ids=lambda value: str(value).replace("/", "."))
@given(changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 8), noise), min_size=1, max_size=4))
def test_a_garbled_file_raises_only_source_errors(
    machine: Path, name: str, pid: int, file: str, changes: list[tuple[float, int, bytes]]
) -> None:
    content = (machine / file).read_bytes()
    for at, length, new in changes:
        start = round(at * len(content))
        content = content[:start] + new + content[start + length :]
    with replaced(machine / file, content):
        assert sound(name, read(name, machine, pid))


@every(("name", "pid", "file"), FILES)
@every("content", [b"", b"\n", b" ", b"0", b"0 0", b"100000 0", b"\xff\xfe", b"a\nb c\n", b"::", b"cpu \n"])
def test_an_unusual_file_raises_only_source_errors(
    machine: Path, name: str, pid: int, file: str, content: bytes
) -> None:
    with replaced(machine / file, content):
        assert sound(name, read(name, machine, pid))


@pytest.mark.parametrize(
    ("name", "file", "content"),
    [
        ("cpu", "proc/stat", b"cpu  1 2 three 4\n"),
        ("disk", "proc/diskstats", b" 254 0 vda 1 2 x\n"),
        ("disk", "proc/diskstats", b" 254\n"),
        ("network", "proc/self/net/dev", b"a\nb\n eth0: 1 2 3\n"),
        ("network", "proc/self/net/snmp", b"Tcp: RetransSegs InErrs\nTcp: 17\n"),
        ("memory", "proc/meminfo", b"MemTotal: lots kB\n"),
        ("memory", "proc/meminfo", b"MemTotal:\n"),
        ("pressure", "proc/pressure/io", b"some avg10=0.00\n"),
        ("process", "proc/4242/stat", b"4242 (java) S 1 2\n"),
        ("cgroup", "proc/4242/cgroup", b"no colons here\n"),
    ],
)
def test_an_unexpected_format_is_reported(machine: Path, name: str, file: str, content: bytes) -> None:
    with replaced(machine / file, content):
        source = HostSource(PARTS[name], lambda: Host(machine, 4242), FakeClock())
        with pytest.raises(SourceError):
            source.read(1.0)


@given(file=st.sampled_from([file for _, _, file in FILES if not file.startswith("sys")]))
def test_a_failing_subject_does_not_affect_others(machine: Path, file: str) -> None:
    with replaced(machine / file, b"\xff garbage \n"):
        for name, pid, needs in FILES:
            if name not in {reader for reader, _, read_file in FILES if read_file == file}:
                assert read(name, machine, pid), needs

"""What unpacks to gigabytes takes neither memory nor time, and is told as damage."""

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from collector.cluster.recordings import sessions
from collector.journal.frames import Damage
from collector.journal.reader import Entry, read
from tests.collector.cluster.recorded_nodes import busy, record

SIZE = 4 << 30
BLOCK = 128 << 10
ROOM = 512 << 20


def bomb(letter: bytes, size: int) -> bytes:
    """Return a frame of one letter, with blocks of 128 KiB that take four bytes each (RFC 8878, 3.1.1)."""
    header = zstandard.FRAME_HEADER + bytes([0x00, 0x58])
    block, last = (((BLOCK << 3) + (1 << 1) + end).to_bytes(3, "little") + letter for end in (0, 1))
    return header + block * (size // BLOCK - 1) + last


@pytest.fixture
def _little_memory() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_the_bomb_is_one() -> None:
    text = zstandard.ZstdDecompressor().decompressobj().decompress(bomb(b"x", 4 << 20))
    assert text == b"x" * (4 << 20)


@pytest.mark.usefixtures("_little_memory")
@pytest.mark.parametrize("letter", [b"x", b"\n"])
def test_a_bomb_is_damage(tmp_path: Path, letter: bytes) -> None:
    folder = record(tmp_path / "a", busy("a", 4))
    (file,) = folder.glob("*.zst")
    content = file.read_bytes()
    file.write_bytes(content + bomb(letter, SIZE) + content)
    found = list(read(file))
    assert len([each for each in found if isinstance(each, Entry)]) == 8
    assert len([each for each in found if isinstance(each, Damage)]) == 1
    ((session,), notes) = sessions([folder])
    assert (session.node, notes) == ("a", [])

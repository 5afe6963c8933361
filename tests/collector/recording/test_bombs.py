"""Frames that decompress to gigabytes are reported as damage, and reading them takes little memory and time."""

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from collector.merge.recordings import sessions
from collector.recording.frames import Damage
from collector.recording.reader import Entry, read
from tests.collector.merge.recorded_nodes import busy, record

SIZE = 4 << 30
BLOCK = 128 << 10
MEMORY_BYTES = 512 << 20


def bomb(letter: bytes, size: int) -> bytes:
    """Return a frame that expands to `size` identical bytes, 128 KiB per four-byte block (RFC 8878, 3.1.1)."""
    header = zstandard.FRAME_HEADER + bytes([0x00, 0x58])
    block, last = (((BLOCK << 3) + (1 << 1) + end).to_bytes(3, "little") + letter for end in (0, 1))
    return header + block * (size // BLOCK - 1) + last


@pytest.fixture
def _little_memory() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_the_bomb_decompresses_to_its_full_size() -> None:
    text = zstandard.ZstdDecompressor().decompressobj().decompress(bomb(b"x", 4 << 20))
    assert text == b"x" * (4 << 20)


@pytest.mark.usefixtures("_little_memory")
@pytest.mark.parametrize("letter", [b"x", b"\n"])
def test_a_bomb_is_damage(tmp_path: Path, letter: bytes) -> None:
    folder = record(tmp_path / "a", busy("a", 4))
    (file,) = folder.glob("*.zst")
    content = file.read_bytes()
    file.write_bytes(content + bomb(letter, SIZE) + content)
    records = list(read(file))
    assert len([record for record in records if isinstance(record, Entry)]) == 8
    assert len([record for record in records if isinstance(record, Damage)]) == 1
    ((session,), notes) = sessions([folder])
    assert (session.node, notes) == ("a", [])

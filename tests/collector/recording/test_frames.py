"""Bytes that only look like frames: reading takes work proportional to their size and still finds valid frames."""

from collections.abc import Callable
from typing import Any

import pytest
import zstandard

from collector.recording.frames import MAGIC, RETRY_BYTES, RETRY_BYTES_PER_BYTE, Damage, Frames, sealed
from tests.every import every

HEADER = MAGIC + b"\x00\x58"
RAW, RLE = 0, 1
LINE = sealed({"t": 1})
GOOD = zstandard.compress(LINE)


def block(kind: int, size: int) -> bytes:
    """Return the header of a block that is not the last in its frame (RFC 8878, 3.1.1.2)."""
    return (size << 3 | kind << 1).to_bytes(3, "little")


HOSTILE: dict[str, Callable[[int], bytes]] = {
    "magic numbers": lambda size: MAGIC * (size // 4),
    "headers": lambda size: HEADER * (size // 6),
    "headers within raw blocks": lambda size: (HEADER + block(RAW, 128 << 10)) * (size // 9),
    "headers and newlines within raw blocks": lambda size: (HEADER + block(RAW, 128 << 10) + b"\n") * (size // 10),
    "headers within small raw blocks": lambda size: (HEADER + block(RAW, 1000)) * (size // 9),
    "frames of repeated bytes": lambda size: (HEADER + (block(RLE, 128 << 10) + b"x") * 20) * (size // 86),
}


class CountingDecompressor:
    """Decompresses with zstandard, and counts the input and output bytes."""

    work = 0

    def __init__(self, max_window_size: int) -> None:
        self._real = zstandard_decompressor(max_window_size=max_window_size).decompressobj()

    def decompressobj(self) -> "CountingDecompressor":
        return self

    def decompress(self, data: bytes) -> bytes:
        out = self._real.decompress(data)
        CountingDecompressor.work += len(data) + len(out)
        return out

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


zstandard_decompressor = zstandard.ZstdDecompressor


def read(data: bytes, size: int = 1 << 18) -> list[bytes | Damage]:
    frames = Frames()
    lines = [line for at in range(0, len(data), size) for line in frames.feed(data[at : at + size])]
    return [*lines, *frames.end()]


@pytest.mark.parametrize("name", HOSTILE)
def test_the_work_is_linear_in_the_input(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zstandard, "ZstdDecompressor", CountingDecompressor)
    work = []
    # The work for repeated bytes is a thousand times their number, so fewer are enough.
    small = 1 << (13 if name == "frames of repeated bytes" else 15)
    for size in (small, 4 * small):
        CountingDecompressor.work = 0
        (damage,) = read(HOSTILE[name](size))
        assert isinstance(damage, Damage)
        work.append(CountingDecompressor.work)
    assert work[1] <= 4.4 * work[0] + 2 * (RETRY_BYTES + 4 * small * RETRY_BYTES_PER_BYTE)


@every("name", HOSTILE)
@every("size", [7, 1 << 18])
def test_a_frame_after_hostile_bytes_is_found(name: str, size: int) -> None:
    damage, line = read(HOSTILE[name](1000) + GOOD, size)
    assert isinstance(damage, Damage)
    assert line == b'{"t":1}'


def test_lines_before_a_damaged_block_are_kept_and_its_position_is_exact() -> None:
    compressor = zstandard.ZstdCompressor().compressobj()
    blocks = [compressor.compress(LINE) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) for _ in range(3)]
    damaged = blocks[0] + blocks[1] + b"\xff\xff\xff" + GOOD
    assert read(damaged) == [b'{"t":1}', b'{"t":1}', Damage(len(blocks[0] + blocks[1]), "damaged block"), b'{"t":1}']


@every("cut", range(1, len(GOOD)))
def test_a_truncated_frame_is_damage(cut: int) -> None:
    (damage,) = read(GOOD[:cut])
    assert isinstance(damage, Damage)


def test_recompressed_frames_with_checksums_are_read() -> None:
    recompressed = zstandard.ZstdCompressor(write_checksum=True, write_content_size=True).compress(LINE * 5000)
    assert read(recompressed * 2, 1000) == [b'{"t":1}'] * 10_000

"""Damages files as transfers, editors and full disks do."""

from hypothesis import strategies as st


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Return the content with bytes changed, lines dropped or swapped, or its end missing; no line is repeated."""
    lines = content.splitlines(keepends=True)
    positions = st.integers(0, len(lines) - 1)
    for _ in range(draw(st.integers(0, 3))):
        first, second = draw(positions), draw(positions)
        lines[first], lines[second] = lines[second], lines[first]
    for index in sorted(draw(st.sets(positions, max_size=3)), reverse=True):
        del lines[index]
    changed = bytearray(b"".join(lines))
    # Nothing is left of a file with one line that was dropped.
    for _ in range(draw(st.integers(0, 3)) if changed else 0):
        changed[draw(st.integers(0, len(changed) - 1))] = draw(st.integers(0, 255))
    return bytes(changed[: draw(st.integers(0, len(changed)))] if draw(st.booleans()) else changed)

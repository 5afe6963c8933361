"""A copy of a command's output in memory."""

import io
from collections.abc import Hashable


class OutputCopy(io.BytesIO):
    """Keeps the output of all streams in the order in which it arrives."""

    def write(self, data: bytes, _stream: Hashable = 1, /) -> int:  # type: ignore[override]
        return super().write(data)

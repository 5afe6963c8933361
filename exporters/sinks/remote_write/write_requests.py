"""Requests of remote write 1.0 (prometheus.WriteRequest) and 2.0 (io.prometheus.write.v2.Request)."""

from collections.abc import Mapping, Sequence

from exporters.sinks.parts.page_samples import SeriesPoint
from exporters.sinks.parts.protobuf_fields import bytes_field, varint, varint_field
from exporters.sinks.remote_write.encoded_series import (
    NAME,
    SAMPLE_BYTES,
    SAMPLE_START,
    VALUE_KEY,
    Labels,
    decoded_labels,
    labels_of,
)
from exporters.sinks.remote_write.native_histograms import MARK, native_labels
from exporters.sinks.remote_write.series_metadata import SeriesMetadata

# If more series than this are cached, the cache and the symbols are discarded.
MAX_SERIES = 50_000
# The numbers of fields in the messages of 2.0.
SYMBOLS, TIME_SERIES = 4, 5
LABEL_REFS, HISTOGRAMS, METADATA = 1, 3, 5
TYPE, HELP_REF = 1, 3


def request_v1(points: Sequence[SeriesPoint]) -> bytes:
    """Return a WriteRequest: points are encoded as its fields. It cannot contain native histograms."""
    return b"".join(part for point in points if point[0][0] != MARK for part in point)


class RequestsV2:
    """Converts points to requests of 2.0, in which the texts of all series are in one table.

    Every request contains the texts of all series so far, so that the encoded references can be cached.
    """

    def __init__(self, metadata: Mapping[str, SeriesMetadata]) -> None:
        """`metadata` contains the metadata of each name; it may grow."""
        self._metadata = metadata
        self._clear()

    def request(self, points: Sequence[SeriesPoint]) -> bytes:
        if len(self._heads) > MAX_SERIES:
            self._clear()
        known = self._heads
        series = [
            (known.get(head) or self._head(head)) + content if head[0] != MARK else self._native_series(head, content)
            for head, content in points
        ]
        return b"".join((*self._symbol_fields, *series))

    def _clear(self) -> None:
        self._heads: dict[bytes, bytes] = {}
        self._symbols: dict[str, int] = {}
        self._symbol_fields: list[bytes] = []
        # The first symbol must be empty.
        self._symbol("")

    def _symbol(self, text: str) -> int:
        if text not in self._symbols:
            self._symbols[text] = len(self._symbols)
            self._symbol_fields.append(bytes_field(SYMBOLS, text.encode()))
        return self._symbols[text]

    def _native_series(self, head: bytes, histogram: bytes) -> bytes:
        if head not in self._heads:
            self._heads[head] = self._description(decoded_labels(native_labels(head)))
        return bytes_field(TIME_SERIES, self._heads[head] + bytes_field(HISTOGRAMS, histogram))

    def _head(self, head_v1: bytes) -> bytes:
        """Return the series up to its sample, and remember it."""
        content = self._description(labels_of(head_v1))
        size_bytes = len(content) + len(SAMPLE_START) + SAMPLE_BYTES
        key = varint(TIME_SERIES << 3 | 2)
        head = self._heads[head_v1] = key + varint(size_bytes) + content + SAMPLE_START + VALUE_KEY
        return head

    def _description(self, labels: Labels) -> bytes:
        """Return the labels and metadata of a series."""
        references = b"".join(varint(self._symbol(text)) for label in labels for text in label)
        metadata = self._metadata.get(dict(labels).get(NAME, ""), SeriesMetadata())
        encoded = varint_field(TYPE, metadata.kind) + varint_field(HELP_REF, self._symbol(metadata.help))
        return bytes_field(LABEL_REFS, references) + bytes_field(METADATA, encoded)

"""Encoding and decoding of records: round trips starting at any full record, and the detection of damage."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model.snapshot import Snapshot, with_rounded_times
from collector.recording.codec import CodingError, DeltaState, decoded, encoded
from collector.recording.frames import LineError, checked, parsed, sealed
from tests.collector.recording.recorded import SNAPSHOTS

LISTS = st.lists(SNAPSHOTS, min_size=1, max_size=6)


def opened(line: bytes) -> dict[str, Any]:
    """Return the content of a line that ends with a newline. Raises LineError for a damaged line."""
    return parsed(checked(line.removesuffix(b"\n")))


def same(left: Snapshot, right: Snapshot) -> bool:
    """Return whether two snapshots are equal, including their value types: 1 differs from 1.0."""
    return repr(left) == repr(right) or (left == right and _kinds(left) == _kinds(right))


def _kinds(snapshot: Snapshot) -> list[dict[tuple[str, ...], type]]:
    return [{series: type(value) for series, value in scrape.values.items()} for scrape in snapshot.scrapes]


@given(LISTS)
def test_decoding_reverses_encoding(snapshots: list[Snapshot]) -> None:
    writing, reading = DeltaState(), DeltaState()
    for snapshot in snapshots:
        assert same(decoded(reading, opened(sealed(encoded(writing, snapshot)))), snapshot)


@given(LISTS)
def test_a_full_record_is_decoded_without_earlier_ones(snapshots: list[Snapshot]) -> None:
    for snapshot in snapshots:
        assert same(decoded(DeltaState(), opened(sealed(encoded(DeltaState(), snapshot)))), snapshot)


@given(SNAPSHOTS)
def test_rounding_times_twice_changes_nothing(snapshot: Snapshot) -> None:
    assert with_rounded_times(snapshot) == snapshot


@given(SNAPSHOTS, SNAPSHOTS)
def test_unchanged_values_are_not_written(previous: Snapshot, current: Snapshot) -> None:
    state = DeltaState()
    encoded(state, previous)
    encoded(state, current)
    again = encoded(state, current)
    assert again.keys() <= set("tlmzracpex")
    assert again.get("a", [0])[0] == 0


@given(SNAPSHOTS, st.data())
def test_a_line_with_a_changed_byte_is_damaged(snapshot: Snapshot, data: st.DataObject) -> None:
    line = bytearray(sealed(encoded(DeltaState(), snapshot)))
    index = data.draw(st.integers(0, len(line) - 1))
    line[index] ^= data.draw(st.integers(1, 255))
    with pytest.raises(LineError):
        opened(bytes(line))


@given(SNAPSHOTS, st.data())
def test_a_truncated_line_is_damaged(snapshot: Snapshot, data: st.DataObject) -> None:
    line = sealed(encoded(DeltaState(), snapshot))
    with pytest.raises(LineError):
        opened(line[: data.draw(st.integers(0, len(line) - 2))])


@given(SNAPSHOTS)
def test_a_line_is_standard_json(snapshot: Snapshot) -> None:
    line = json.loads(sealed(encoded(DeltaState(), snapshot)))
    assert line["t"] == snapshot.tick.time_s
    assert len(line["crc"]) == 8


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("tlmzrbacopensxidjfkghw"), inner),
    max_leaves=12,
)


@given(SNAPSHOTS, st.dictionaries(st.sampled_from("tlmzrbacopensxidjfkghw"), JSON))
def test_malformed_fields_give_an_error_or_a_valid_snapshot(snapshot: Snapshot, fields: dict[str, object]) -> None:
    line = {**encoded(DeltaState(), snapshot), **fields}
    try:
        result = decoded(DeltaState(), line)
    except CodingError:
        return
    assert decoded(DeltaState(), encoded(DeltaState(), with_rounded_times(result))) == with_rounded_times(result)

"""What is read of a line is what was written, from every full line on; what is damaged is never believed."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.journal.decoding import decoded
from collector.journal.encoding import DeltaState, encoded
from collector.journal.record_lines import LineError, opened, sealed
from collector.journal.validation import CodingError
from collector.model.snapshot import Snapshot, with_rounded_times
from tests.collector.journal.recorded import SNAPSHOTS

LISTS = st.lists(SNAPSHOTS, min_size=1, max_size=6)


def same(one: Snapshot, other: Snapshot) -> bool:
    """Equality that tells 1 from 1.0."""
    return repr(one) == repr(other) or (one == other and _kinds(one) == _kinds(other))


def _kinds(snapshot: Snapshot) -> list[dict[tuple[str, ...], type]]:
    return [{series: type(value) for series, value in scrape.values.items()} for scrape in snapshot.scrapes]


@given(LISTS)
def test_what_is_written_is_what_is_read(snapshots: list[Snapshot]) -> None:
    writing, reading = DeltaState(), DeltaState()
    for snapshot in snapshots:
        assert same(decoded(reading, opened(sealed(encoded(writing, snapshot)))), snapshot)


@given(LISTS)
def test_a_line_that_knows_of_nothing_before_it_can_be_read_alone(snapshots: list[Snapshot]) -> None:
    for snapshot in snapshots:
        assert same(decoded(DeltaState(), opened(sealed(encoded(DeltaState(), snapshot)))), snapshot)


@given(SNAPSHOTS)
def test_rounding_times_twice_changes_nothing(snapshot: Snapshot) -> None:
    assert with_rounded_times(snapshot) == snapshot


@given(SNAPSHOTS, SNAPSHOTS)
def test_what_has_not_changed_is_not_written(one: Snapshot, other: Snapshot) -> None:
    state = DeltaState()
    encoded(state, one)
    encoded(state, other)
    again = encoded(state, other)
    assert again.keys() <= set("tlmzracpex")
    assert again.get("a", [0])[0] == 0


@given(SNAPSHOTS, st.data())
def test_a_line_with_a_byte_that_is_another_is_damaged(snapshot: Snapshot, data: st.DataObject) -> None:
    line = bytearray(sealed(encoded(DeltaState(), snapshot)))
    place = data.draw(st.integers(0, len(line) - 1))
    line[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(LineError):
        opened(bytes(line))


@given(SNAPSHOTS, st.data())
def test_a_line_that_is_cut_is_damaged(snapshot: Snapshot, data: st.DataObject) -> None:
    line = sealed(encoded(DeltaState(), snapshot))
    with pytest.raises(LineError):
        opened(line[: data.draw(st.integers(0, len(line) - 1))])


@given(SNAPSHOTS)
def test_a_line_is_json_for_everybody(snapshot: Snapshot) -> None:
    line = json.loads(sealed(encoded(DeltaState(), snapshot)))
    assert line["t"] == snapshot.tick.time_s
    assert len(line["crc"]) == 8


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("tlmzrbacopensxidjfkghw"), inner),
    max_leaves=12,
)


@given(SNAPSHOTS, st.dictionaries(st.sampled_from("tlmzrbacopensxidjfkghw"), JSON))
def test_nonsense_is_told_and_raises_nothing_else(snapshot: Snapshot, nonsense: dict[str, object]) -> None:
    line = {**encoded(DeltaState(), snapshot), **nonsense}
    with suppress(CodingError):
        decoded(DeltaState(), line)

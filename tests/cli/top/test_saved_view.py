"""What top remembers from one start to the next, and what becomes of files that it did not write."""

import json
import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.top.saved_view import remember, remembered, state_path
from cli.top.view_state import ViewState

LOOKS = (
    ViewState(),
    ViewState(chosen=3, sort="gc_pct", reverse=True),
    ViewState(picked=("reads_per_s", "heap_pct"), sort="node"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
)


@pytest.mark.parametrize("view", LOOKS)
def test_columns_and_order_are_remembered(view: ViewState, tmp_path: Path) -> None:
    path = tmp_path / "state" / "casstat" / "top.json"
    remember(path, view)
    assert remembered(path) == view
    assert [each.name for each in path.parent.iterdir()] == ["top.json"]


def test_what_was_shown_of_one_cluster_is_not_remembered(tmp_path: Path) -> None:
    remember(tmp_path / "top.json", ViewState(filter="secret", cursor=7, node=7, at_s=5.0))
    assert "secret" not in (tmp_path / "top.json").read_text()
    assert remembered(tmp_path / "top.json") == ViewState()


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        ({"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/casstat/top.json"),
        ({"HOME": "/h"}, "/h/.local/state/casstat/top.json"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state/casstat/top.json"),
        ({}, None),
    ],
)
def test_the_file_is_in_the_users_state_directory(environ: dict[str, str], path: str | None) -> None:
    assert state_path(environ) == (Path(path) if path else None)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b"null", b"\xff\x00", b"[" * 4000, b'{"set": ' + b"9" * 9000, b'{"sort": "nosuch"}']
)
def test_a_damaged_file_means_the_usual_columns(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "top.json").write_bytes(content)
    assert remembered(tmp_path / "top.json") == ViewState()


@given(st.dictionaries(st.sampled_from(["set", "columns", "sort", "reverse"]), JSON))
def test_whatever_a_file_says_is_a_look(content: dict[str, object]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "top.json")
        path.write_text(json.dumps(content))
        view = remembered(path)
        assert view == replace(
            ViewState(), chosen=view.chosen, picked=view.picked, sort=view.sort, reverse=view.reverse
        )


def test_what_is_no_file_is_not_read_and_what_cannot_be_written_is_not_kept(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "top.json")
    assert remembered(tmp_path / "top.json") == ViewState()
    (tmp_path / "link").symlink_to("/dev/zero")
    assert remembered(tmp_path / "link") == ViewState()
    assert remembered(None) == remembered(tmp_path) == remembered(tmp_path / "nosuch") == ViewState()
    remember(Path("/proc/nowhere/top.json"), ViewState())
    remember(None, ViewState())

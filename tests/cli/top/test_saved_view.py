"""The view that `top` saves when it exits: what is saved, where, and how damaged files are handled."""

import json
import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.top.view_state import SETS, ViewState, remember, remembered, state_path
from exporters.live.live_columns import COLUMN_INDEX

VIEWS = (
    ViewState(),
    ViewState(chosen=3, sort="gc_pct", reverse=True),
    ViewState(picked=("reads_per_s", "heap_pct"), sort="node"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
    max_leaves=10,
)


@pytest.mark.parametrize("view", VIEWS)
def test_columns_and_order_are_remembered(view: ViewState, tmp_path: Path) -> None:
    path = tmp_path / "state" / "casstat" / "top.json"
    remember(path, view)
    assert remembered(path) == view
    assert [file.name for file in path.parent.iterdir()] == ["top.json"]


def test_the_filter_and_the_cursor_are_not_remembered(tmp_path: Path) -> None:
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
def test_a_damaged_file_gives_the_default_view(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "top.json").write_bytes(content)
    assert remembered(tmp_path / "top.json") == ViewState()


@given(st.dictionaries(st.sampled_from(["set", "columns", "sort", "reverse"]), JSON))
def test_any_json_object_gives_a_valid_view(content: dict[str, object]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "top.json")
        path.write_text(json.dumps(content))
        view = remembered(path)
        assert 0 <= view.chosen < len(SETS)
        assert {*view.picked, view.sort} <= {"", "node", *COLUMN_INDEX}
        assert isinstance(view.reverse, bool)
        assert replace(view, chosen=0, picked=(), sort="", reverse=False) == ViewState()


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "top.json")
    assert remembered(tmp_path / "top.json") == ViewState()
    (tmp_path / "link").symlink_to("/dev/zero")
    assert remembered(tmp_path / "link") == ViewState()
    assert remembered(None) == remembered(tmp_path) == remembered(tmp_path / "nosuch") == ViewState()


def test_a_failure_to_save_the_view_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    remember(tmp_path / "file" / "top.json", ViewState())
    remember(None, ViewState())
    assert [path.name for path in tmp_path.iterdir()] == ["file"]

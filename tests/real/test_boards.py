"""percli converts every dashboard completely, and refuses malformed ones."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dashboards.grafana import dashboard_files
from tests.dashboards import queries
from tests.real.percli import migrated

Json = dict[str, Any]
FILES = [
    (store, name, text) for store in dashboard_files.STORES for name, text in dashboard_files.packaged_dashboards(store)
]


@pytest.mark.parametrize(("store", "name", "text"), FILES, ids=[f"{store} {name}" for store, name, _ in FILES])
def test_every_dashboard_is_converted_completely(store: str, name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    converted, errors = migrated(path)
    assert converted is not None, errors
    board = json.loads(text)
    assert len(converted["spec"]["panels"]) == len(queries.panels(board))
    names = [variable["spec"]["name"] for variable in converted["spec"]["variables"]]
    assert names == [variable["name"] for variable in board["templating"]["list"]]
    if store == "prometheus":
        text_converted = json.dumps(converted, ensure_ascii=False)
        for panel in queries.panels(board):
            if panel["type"] in ("timeseries", "stat"):
                for target in panel["targets"]:
                    assert json.dumps(target["expr"], ensure_ascii=False) in text_converted


MALFORMED: dict[str, Callable[[Json], None]] = {
    "a position that is not a number": lambda board: board["panels"][1]["gridPos"].update(x="left"),
    "panels that are not a list": lambda board: board.update(panels={}),
    "a title that is not a string": lambda board: board.update(title=7),
    "variables that are not a list": lambda board: board["templating"].update(list="x"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_dashboard_is_refused(name: str, tmp_path: Path) -> None:
    board = queries.dashboards("prometheus")[0]
    MALFORMED[name](board)
    path = tmp_path / "board.json"
    path.write_text(json.dumps(board))
    converted, errors = migrated(path)
    assert converted is None
    assert "Error" in errors

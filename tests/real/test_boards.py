"""The boards as another program reads Grafana's dashboards: it takes each of them whole, and no malformed one."""

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
def test_every_board_is_taken(store: str, name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    made, said = migrated(path)
    assert made is not None, said
    board = json.loads(text)
    assert len(made["spec"]["panels"]) == len(queries.panels(board))
    names = [variable["spec"]["name"] for variable in made["spec"]["variables"]]
    assert names == [variable["name"] for variable in board["templating"]["list"]]
    if store == "prometheus":
        kept = json.dumps(made, ensure_ascii=False)
        for panel in queries.panels(board):
            if panel["type"] in ("timeseries", "stat"):
                for target in panel["targets"]:
                    assert json.dumps(target["expr"], ensure_ascii=False) in kept


MALFORMED: dict[str, Callable[[Json], None]] = {
    "a place that is no number": lambda board: board["panels"][1]["gridPos"].update(x="left"),
    "panels that are no list": lambda board: board.update(panels={}),
    "a title that is no text": lambda board: board.update(title=7),
    "variables that are no list": lambda board: board["templating"].update(list="x"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_one_is_refused(what: str, tmp_path: Path) -> None:
    board = queries.dashboards("prometheus")[0]
    MALFORMED[what](board)
    path = tmp_path / "board.json"
    path.write_text(json.dumps(board))
    made, said = migrated(path)
    assert made is None
    assert "Error" in said

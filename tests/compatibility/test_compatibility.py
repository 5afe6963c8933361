"""Recordings, state files and settings from earlier versions give the results that those versions printed."""

import csv
import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from cli.agent.agent_state import LastIdentity
from cli.agent.run_store import RunStore
from cli.main import main
from cli.top.view_state import remember, remembered
from collector.merge import merge as merging
from collector.model.clock import SystemClock
from exporters.api.web_config import parsed
from exporters.sinks.shipping import tick_queue
from tests.collector.merge.reference_merge import reference_merge
from tests.faults.fake_store import FakeStore

HERE = Path(__file__).parent
RECORDINGS, STATE, EXPECTED = HERE / "recordings", HERE / "state", HERE / "expected"
FORMATS = ("format_1", "format_2")
# The texts of these events are not recorded but generated during replay, so their wording may change.
DERIVED_EVENTS = ("restart",)

Casstat = Callable[..., str]
Json = dict[str, Any]


@pytest.fixture
def casstat(capsys: pytest.CaptureFixture[str]) -> Casstat:
    def run(*arguments: str | Path) -> str:
        code = main([str(argument) for argument in arguments])
        output = capsys.readouterr()
        assert code == 0, output.err
        return output.out

    return run


@pytest.fixture
def store() -> Iterator[FakeStore]:
    with closing(FakeStore()) as listening:
        yield listening


def expected_text(name: str) -> str:
    return (EXPECTED / name).read_text(encoding="utf-8")


def json_lines(text: str) -> list[Json]:
    return [json.loads(line) for line in text.splitlines()]


def assert_includes(actual: Sequence[Json], expected: Sequence[Json]) -> None:
    """Assert that each row has all keys of the expected row, with the same values; it may have more keys."""
    assert [{key: row.get(key) for key in old} for row, old in zip(actual, expected, strict=True)] == list(expected)


def leaves(value: Any) -> list[Any]:
    """Return the values inside nested objects and lists, in order; `Path` objects are converted to strings."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves(item)]
    return [str(value) if isinstance(value, Path) else value]


@pytest.mark.parametrize("version", FORMATS)
def test_journal_info_is_unchanged(casstat: Casstat, version: str) -> None:
    folders = sorted((RECORDINGS / version).iterdir())
    outputs = [casstat("journal", "info", "--format", "json", folder) for folder in folders]
    assert_includes([json.loads(output) for output in outputs], json_lines(expected_text(f"{version}.info.jsonl")))
    casstat("journal", "check", RECORDINGS / version)


@pytest.mark.parametrize("version", FORMATS)
@pytest.mark.parametrize("is_columnar", [True, False], ids=["columnar", "reference"])
def test_merge_output_is_unchanged(
    casstat: Casstat, tmp_path: Path, version: str, is_columnar: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_columnar:
        monkeypatch.setattr(merging, "merge_all", lambda runs, jobs, *_: [reference_merge(runs, job) for job in jobs])
    casstat("merge", RECORDINGS / version, "-i", "1s", "-o", tmp_path)
    actual, expected = (
        list(csv.DictReader(text.splitlines(), delimiter="\t"))
        for text in ((tmp_path / "rows.tsv").read_text(encoding="utf-8"), expected_text(f"{version}.rows.tsv"))
    )
    assert_includes(without_restart_texts(actual), without_restart_texts(expected))


def without_restart_texts(rows: list[dict[str, Any]]) -> list[Json]:
    """Return the rows with restart events cut to `restarted`: the rest is generated during reading and may change."""
    return [row | {"events": re.sub(r"restarted: [^;]*", "restarted", row["events"])} for row in rows]


def without_derived_texts(rows: list[Json]) -> list[Json]:
    for row in rows:
        for event in row["events"]:
            if event["kind"] in DERIVED_EVENTS:
                del event["text"]
    return rows


@pytest.mark.parametrize("version", FORMATS)
def test_replay_output_is_unchanged(casstat: Casstat, version: str) -> None:
    output = casstat("replay", "--format", "json", "-i", "1s", "--wide", RECORDINGS / version / "node-b")
    actual, expected = json_lines(output), json_lines(expected_text(f"{version}.replay.jsonl"))
    assert_includes(without_derived_texts(actual), without_derived_texts(expected))


def test_shipping_resumes_at_the_checkpoint(casstat: Casstat, tmp_path: Path, store: FakeStore) -> None:
    recording = shutil.copytree(RECORDINGS / "format_2" / "node-b", tmp_path / "node-b")
    url = f"influxdb+http://127.0.62.3:{store.port}/db"
    folder = tmp_path / "state" / tick_queue.file_name(str(recording.resolve()))
    folder.mkdir(parents=True)
    shutil.copy(STATE / "store.checkpoint.json", tick_queue.checkpoint_path(folder, url))
    casstat("ship", recording, "--to", url, "--state", tmp_path / "state")
    assert sorted(line.decode() for line in store.accepted_lines) == expected_text("shipped.txt").splitlines()


def test_checkpoint_names_are_unchanged() -> None:
    assert tick_queue.checkpoint_path(Path(), "victoriametrics+http://127.0.62.3:35359").name == (
        "victoriametrics_http_127.0.62.3_35359-1f3e8f17.checkpoint.json"
    )


def test_recorded_runs_are_still_read(tmp_path: Path) -> None:
    shutil.copy(STATE / "runs.jsonl", tmp_path)
    messages: list[str] = []
    assert RunStore(tmp_path, SystemClock(), messages.append).all_runs() == json.loads(expected_text("runs.json"))
    assert messages == []


def test_the_last_node_identity_is_still_read() -> None:
    assert leaves(asdict(LastIdentity(STATE).identity)) == leaves(json.loads(expected_text("identity.json")))


def test_a_saved_top_view_is_still_read(tmp_path: Path) -> None:
    remember(tmp_path / "top.json", remembered(STATE / "top.json"))
    assert json.loads((tmp_path / "top.json").read_text()) == json.loads((STATE / "top.json").read_text())


def settings(text: str) -> set[str]:
    """Return the settings that have a value, each as a line of TOML without its comment."""
    return {line.rpartition("  # ")[0] for line in text.splitlines() if not line.startswith("#")}


def test_agent_settings_are_still_read(casstat: Casstat) -> None:
    output = casstat("agent", "--config", STATE / "agent.toml", "--print-config")
    assert settings(output) >= settings(expected_text("agent.toml"))


def test_a_web_configuration_is_still_read() -> None:
    file = STATE / "web.yml"
    config = parsed(file.read_text(encoding="utf-8"), Path(file.name))
    assert leaves(asdict(config)) == leaves(json.loads(expected_text("web.json")))

"""`casstat capacity` with simulated load generators instead of recorded runs."""

import json
import os
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, replace
from io import StringIO
from math import inf
from pathlib import Path
from shutil import copytree
from typing import Any

import click
import numpy as np
import pytest

from cli.errors import CasstatError
from cli.experiments.capacity_program import CapacityOptions, Recording, capacity
from cli.experiments.capacity_steps import RecordedStep
from cli.record.command.supervised_command import CommandResult
from cli.record.record_program import Around, RecordedRun, RecordSettings
from exporters.results.capacity.search import SearchPlan
from exporters.results.capacity.step_verdict import StepData
from exporters.results.saturation.saturation import CPU, GENERATOR, Finding, Resource, Saturation
from exporters.results.summary.conditions import condition_of
from tests.every import every
from tests.examples import thorough
from tests.exporters.results.capacity.simulated_queue import (
    CLOSED_CAPACITY,
    LIMIT_MS,
    OPEN_CAPACITY,
    closed_loop,
    open_loop,
)

Measure = Callable[[float, float, np.random.Generator], StepData]
# The plots of `searched` are drawn.
pytestmark = [pytest.mark.usefixtures("undrawn"), thorough]
PLAN = SearchPlan(50.0, 5000.0)
SHORT_PLAN = SearchPlan(50.0, 100.0)
COARSE_PLAN = SearchPlan(50.0, 5000.0, precision=0.5)
COMMAND = ("true", "--rate={rate}", "{duration}")
WARM_UP_S = 10.0


class Laboratory:
    """Records simulated steps; commands with a rate above `highest` fail."""

    def __init__(self, measure: Measure, saturated: Resource | None = CPU, highest: float = inf) -> None:
        self._measure = measure
        self._saturated = saturated
        self._highest = highest
        self._random = np.random.default_rng(1)
        self.settings: list[RecordSettings] = []
        self.interrupt_at = 0
        """The number of the step that is interrupted; 0 for none."""

    @property
    def recording(self) -> Recording:
        return Recording(self._record, self._read)

    def _record(self, settings: RecordSettings, around: Around) -> RecordedRun:
        self.settings.append(settings)
        assert settings.folder is not None
        settings.folder.mkdir(parents=True)
        if len(self.settings) == self.interrupt_at:
            return RecordedRun(settings.folder, CommandResult(130, is_interrupted=True), condition_met=False)
        rate, length_s = (float(word.removeprefix("--rate=")) for word in settings.command[1:3])
        exit_code = 3 if rate > self._highest else 0
        (settings.folder / "step").write_text(json.dumps([rate, length_s - WARM_UP_S, exit_code]))
        return RecordedRun(settings.folder, CommandResult(exit_code), condition_met=False)

    def _read(self, folder: Path) -> RecordedStep:
        rate, length_s, exit_code = json.loads((folder / "step").read_text())
        first = None if self._saturated is None else Finding(self._saturated, "n1", 0.0, {})
        return RecordedStep(self._measure(rate, length_s, self._random), exit_code, Saturation(first, (), ()))


def options(folder: Path, objective: str, **changes: object) -> CapacityOptions:
    record = RecordSettings(COMMAND, warm_up=WARM_UP_S, folder=folder)
    return replace(CapacityOptions(record, PLAN, (condition_of(objective),), settle_s=0.0), **changes)  # type: ignore[arg-type]


def result(folder: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads((folder / "results.json").read_text())
    return content


OPEN, CLOSED = f"client_p99_ms < {LIMIT_MS}", "client_p99_ms < 1000"


@dataclass(frozen=True)
class Searched:
    """A complete search, and what it printed."""

    options: CapacityOptions
    laboratory: Laboratory
    printed: str

    @property
    def folder(self) -> Path:
        assert self.options.record.folder is not None
        return self.options.record.folder


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    wanted = options(tmp_path_factory.mktemp("searched") / "search", OPEN)
    record = replace(wanted.record, nodes=("http://a",), clients=("result.csv",), tags=(("size", "1"),))
    wanted, laboratory = replace(wanted, record=record), Laboratory(open_loop)
    with redirect_stdout(StringIO()) as printed:
        assert capacity(wanted, laboratory.recording) == 0
    return Searched(wanted, laboratory, printed.getvalue())


def test_the_capacity_is_printed_and_written(searched: Searched) -> None:
    content = result(searched.folder)
    assert content["capacity"] == pytest.approx(OPEN_CAPACITY, rel=0.05)
    assert content["queueing_included"] is True
    assert f"Capacity: {content['capacity']:g} operations per second (95% interval: " in searched.printed
    assert "cpu" in searched.printed.lower()
    assert "queueing" not in searched.printed
    steps = len(searched.laboratory.settings)
    markdown = (searched.folder / "results.md").read_text()
    assert markdown.count("\n| ") == steps + 2
    assert (searched.folder / "results.csv").read_text().count("\n") == steps + 1


def test_steps_are_runs_with_the_rate_and_the_length(searched: Searched) -> None:
    first = searched.laboratory.settings[0]
    assert first.command == ("true", "--rate=50", "40")
    assert first.folder == searched.folder / "runs" / "01-50"
    assert first.duration is None
    assert {settings.load_s for settings in searched.laboratory.settings} >= {40.0, 100.0}


def test_without_a_placeholder_the_duration_ends_the_command(tmp_path: Path) -> None:
    laboratory = Laboratory(open_loop)
    wanted = options(tmp_path / "search", OPEN, plan=SHORT_PLAN)
    wanted = replace(wanted, record=replace(wanted.record, command=("true", "--rate={rate}", "40")))
    capacity(wanted, laboratory.recording)
    assert laboratory.settings[0].duration == 40.0


def test_with_service_times_the_result_says_that_queueing_is_not_included(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity(options(tmp_path / "search", CLOSED), Laboratory(closed_loop).recording)
    content = result(tmp_path / "search")
    assert content["capacity"] == pytest.approx(CLOSED_CAPACITY, rel=0.05)
    assert content["queueing_included"] is False
    assert "queueing is not included" in capsys.readouterr().out


@pytest.mark.parametrize("saturated", [GENERATOR, None])
def test_a_rate_that_the_load_generator_cannot_reach_is_not_the_cluster_s_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], saturated: Resource | None
) -> None:
    wanted = options(tmp_path / "search", CLOSED, plan=COARSE_PLAN)
    assert capacity(wanted, Laboratory(closed_loop, saturated).recording) == 0
    printed = capsys.readouterr().out
    assert "Capacity: at least" in printed
    assert "The load generator, true, did not achieve " in printed


@pytest.mark.parametrize("saturated", [GENERATOR, None])
def test_the_lowest_rate_that_only_the_load_generator_misses_says_nothing_about_the_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], saturated: Resource | None
) -> None:
    wanted = options(tmp_path / "search", CLOSED, plan=SearchPlan(400.0, 5000.0))
    assert capacity(wanted, Laboratory(closed_loop, saturated).recording) == 1
    printed = capsys.readouterr().out
    assert "The capacity is unknown: nothing shows that the cluster limited the lowest rate." in printed
    assert "The load generator, true, did not achieve 400/s: 1" in printed
    assert "does not meet" not in printed


def test_an_objective_that_is_missed_at_a_rate_that_was_achieved_is_the_cluster_s_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = options(tmp_path / "search", OPEN, plan=COARSE_PLAN)
    assert capacity(wanted, Laboratory(open_loop, None).recording) == 0
    printed = capsys.readouterr().out
    assert "operations per second (95% interval: " in printed
    assert "load generator" not in printed


def test_nothing_is_printed_or_created_before_the_first_step_can_begin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def unreachable(*_: object) -> RecordedRun:
        raise CasstatError("no node can be recorded")

    laboratory = Laboratory(open_loop)
    with pytest.raises(CasstatError, match="no node can be recorded"):
        capacity(options(tmp_path / "search", OPEN), replace(laboratory.recording, record=unreachable))
    wanted = options(tmp_path / "search", OPEN)
    record = replace(wanted.record, seeds=("http://127.0.0.1:8778/jolokia",))
    with pytest.raises(click.UsageError, match="--seed takes the address of an agent"):
        capacity(replace(wanted, record=record), laboratory.recording)
    with pytest.raises(click.UsageError, match="--max-time must be at least as long as a step"):
        capacity(replace(wanted, max_time_s=39.0), laboratory.recording)
    assert capsys.readouterr() == ("", "")
    assert not (tmp_path / "search").exists()


def test_without_a_recognised_result_the_search_ends_after_the_first_step(tmp_path: Path) -> None:
    def nothing(*_: object) -> StepData:
        return StepData({"read_p99_ms": 1.0}, {})

    laboratory = Laboratory(nothing)
    recording = replace(
        laboratory.recording, read=lambda folder: replace(laboratory.recording.read(folder), problem="no result")
    )
    with pytest.raises(CasstatError, match="the first step cannot be judged: no result"):
        capacity(options(tmp_path / "search", "read_p99_ms < 5"), recording)
    assert len(laboratory.settings) == 1


def test_a_command_that_fails_at_the_first_rate_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CasstatError, match="the command failed at the first rate: exit status 3"):
        capacity(options(tmp_path / "search", OPEN), Laboratory(open_loop, highest=10).recording)


def test_a_command_that_fails_at_a_higher_rate_does_not_meet_the_objectives(tmp_path: Path) -> None:
    assert capacity(options(tmp_path / "search", OPEN), Laboratory(open_loop, highest=100).recording) == 0
    content = result(tmp_path / "search")
    assert content["failing_rate"] == pytest.approx(100, rel=0.05)


@pytest.mark.parametrize("failed", [{"problem": "no result"}, {"exit_code": 3}])
def test_a_step_without_a_result_is_not_judged_together_with_a_later_one(
    tmp_path: Path, failed: dict[str, Any]
) -> None:
    """The confirmation of the lowest rate that failed decides, if it was only the load generator that failed there."""
    laboratory = Laboratory(open_loop)

    def read(folder: Path) -> RecordedStep:
        step = laboratory.recording.read(folder)
        return replace(step, data=StepData({}, {}), **failed) if folder.name.startswith("02-") else step

    wanted = options(tmp_path / "search", OPEN, plan=SHORT_PLAN)
    assert capacity(wanted, replace(laboratory.recording, read=read)) == 0
    content = result(tmp_path / "search")
    assert content["capacity"] == 100
    assert content["conclusions"] == ["Capacity: at least 100 operations per second, the highest rate tested."]


def test_if_no_rate_meets_the_objectives_the_exit_status_is_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert capacity(options(tmp_path / "search", "client_p99_ms < 0.001"), Laboratory(open_loop).recording) == 1
    assert "The lowest rate, 50/s, does not meet the objectives: client_p99_ms is" in capsys.readouterr().out


def test_an_interrupted_search_is_resumed(tmp_path: Path) -> None:
    folder = tmp_path / "search"
    interrupted = Laboratory(open_loop)
    interrupted.interrupt_at = 4
    with pytest.raises(KeyboardInterrupt):
        capacity(options(folder, OPEN), interrupted.recording)
    assert result(folder)["problem"] == "interrupted"
    resumed = Laboratory(open_loop)
    assert capacity(options(folder, OPEN, resume=True), resumed.recording) == 0
    assert resumed.settings[0].folder == folder / "runs" / "04-400"
    content = result(folder)
    assert content["capacity"] == pytest.approx(OPEN_CAPACITY, rel=0.05)
    assert content["problem"] is None


def test_a_search_is_stored_without_secrets_and_is_resumed_with_another_password(tmp_path: Path) -> None:
    folder, first, second = tmp_path / "search", Laboratory(open_loop), Laboratory(open_loop)
    first.interrupt_at = 2
    for laboratory, password in ((first, "geh3im-1"), (second, "geh3im-2")):
        wanted = options(folder, OPEN, resume=laboratory is second, plan=SHORT_PLAN)
        record = replace(wanted.record, command=(*COMMAND, f"--password={password}"), name=f"at token={password}")
        with suppress(KeyboardInterrupt):
            capacity(replace(wanted, record=record), laboratory.recording)
        assert laboratory.settings[0].command[3] == f"--password={password}"
        assert not any("geh3im" in path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())
    settings = json.loads((folder / "capacity.json").read_text())["settings"]
    assert settings["command"] == [*COMMAND, "--password=REDACTED"]
    assert second.settings[0].folder == folder / "runs" / "02-100"


def test_a_search_with_other_settings_is_not_resumed(searched: Searched, tmp_path: Path) -> None:
    recording = Laboratory(open_loop).recording
    with pytest.raises(CasstatError, match="contains another search: its objectives are "):
        capacity(replace(searched.options, objectives=(condition_of(CLOSED),), resume=True), recording)
    with pytest.raises(CasstatError, match="already contains a search"):
        capacity(searched.options, recording)
    with pytest.raises(CasstatError, match="there is no search to resume"):
        capacity(options(tmp_path / "none", OPEN, resume=True), recording)


@pytest.mark.parametrize("text", ["", "[1]", '{"schema_version": 2}', "[" * 100_000])
def test_a_damaged_search_is_not_resumed(tmp_path: Path, text: str) -> None:
    (tmp_path / "capacity.json").write_text(text)
    with pytest.raises(CasstatError, match="not the state of a search"):
        capacity(options(tmp_path, OPEN, resume=True), Laboratory(open_loop).recording)


def test_a_named_pipe_is_no_search(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "capacity.json")
    with pytest.raises(CasstatError, match="not the state of a search"):
        capacity(options(tmp_path, OPEN, resume=True), Laboratory(open_loop).recording)


@every(
    "changes, message",
    [
        ({"nodes": ("http://b",)}, "its nodes is 'http://a' instead of 'http://b'"),
        ({"seeds": ("http://c",)}, "its --seed is absent instead of 'http://c'"),
        ({"client_hosts": ("ssh://gen1",)}, "its --client-host is absent instead of ssh://gen1"),
        ({"clients": ("other.csv",)}, "its --client is result.csv instead of other.csv"),
        ({"tags": (("size", "2"),)}, "its --tag is 'size=1' instead of 'size=2'"),
        ({"command": ("true", "-v", "--rate={rate}", "{duration}")}, "its command is "),
        ({"warm_up": 5.0}, "its warm-up is 10 s instead of 5 s"),
    ],
)
def test_a_search_on_other_nodes_or_with_other_clients_is_not_resumed(
    searched: Searched, changes: dict[str, object], message: str
) -> None:
    resumed, before = Laboratory(open_loop), result(searched.folder)
    other = replace(searched.options.record, **changes)  # type: ignore[arg-type]
    with pytest.raises(CasstatError) as raised:
        capacity(replace(searched.options, record=other, resume=True), resumed.recording)
    assert message.replace("'", "") in str(raised.value).replace("'", "")
    assert resumed.settings == []
    assert result(searched.folder) == before


def test_a_complete_search_is_resumed_without_a_step(searched: Searched, tmp_path: Path) -> None:
    folder = copytree(searched.folder, tmp_path / "search")
    record, resumed = replace(searched.options.record, folder=folder), Laboratory(open_loop)
    with pytest.raises(CasstatError, match="its warm-up is"):
        capacity(replace(searched.options, record=replace(record, warm_up=5.0), resume=True), resumed.recording)
    assert capacity(replace(searched.options, record=record, resume=True), resumed.recording) == 0
    assert resumed.settings == []


def test_no_step_begins_that_would_end_after_the_time_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert capacity(options(tmp_path / "search", OPEN, max_time_s=45.0), Laboratory(open_loop).recording) == 0
    assert "The search ended early: the time limit of 45 s." in capsys.readouterr().out


def test_the_shortest_time_limit_that_is_accepted_is_enough_for_a_step(tmp_path: Path) -> None:
    laboratory = Laboratory(open_loop)
    assert capacity(options(tmp_path / "search", OPEN, max_time_s=40.0), laboratory.recording) == 0
    assert len(laboratory.settings) == 1


@pytest.mark.parametrize(
    ("command", "objective", "message"),
    [
        (("true", "--rate=50"), OPEN, r"does not use {rate} \(hint: add it to the load generator's arguments\)"),
        (("true", "{rate}", "{threads}"), OPEN, "unknown placeholder {threads}"),
        (("true", "{rate}"), "client_p98_ms < 3", "unknown column client_p98_ms .*did you mean client_p9"),
        (("true", "{rate}"), "nonsense < 3", "unknown column nonsense"),
    ],
)
def test_impossible_searches_are_refused(
    tmp_path: Path, command: tuple[str, ...], objective: str, message: str
) -> None:
    wanted = options(tmp_path / "search", objective)
    wanted = replace(wanted, record=replace(wanted.record, command=command))
    with pytest.raises(click.UsageError, match=message):
        capacity(wanted, Laboratory(open_loop).recording)
    assert not (tmp_path / "search").exists()


def test_an_objective_without_a_value_in_the_first_step_is_an_error(tmp_path: Path) -> None:
    wanted = options(tmp_path / "search", "client_get_p99_ms < 3")
    with pytest.raises(CasstatError, match=r"no value for client_get_p99_ms .*similar columns: client_p99_ms"):
        capacity(wanted, Laboratory(open_loop).recording)

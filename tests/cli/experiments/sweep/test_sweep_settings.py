"""Malformed sweeps are refused before anything starts, each with one clear message."""

import os
from dataclasses import replace
from pathlib import Path

import click
import pytest

from cli.errors import CasstatError
from cli.experiments import sweep_program
from cli.experiments.sweep_settings import (
    PlannedRun,
    SweepOptions,
    items_per_op_of,
    parameters_of,
    record_settings,
    words_of,
)
from cli.main import main
from cli.parameters.parameter_values import filled_except_hosts
from cli.record.record_program import RecordSettings
from cli.run_folder import run_folder_name
from exporters.results.sweep.sweep_output import COLUMNS, ITEM_COLUMNS

MANY = ("-P", "a=1..40", "-P", "b=1..40")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--", "true"], "no parameter given (hint: use -P concurrency=1,5,10 or -P batch=100..1000:100)"),
        (["-P", "a=1"], "no command given (hint: use 'casstat sweep [NODE]... -- COMMAND')"),
        (["-P", "a=1", "--"], "no command given"),
        (["-P", "a", "--", "true", "{a}"], "'a': expected NAME=1,5,10 or NAME=100..1000:100"),
        (["-P", "a=1..", "--", "true", "{a}"], "'1..' is not a range"),
        (["-P", "a=1", "-P", "a=2", "--", "true", "{a}"], "the parameter a is given twice"),
        (["-P", "a=1", "--", "true"], "the command does not use {a} (hint: add it, or omit -P a)"),
        (["-P", "a=1", "--", "true", "{a}", "{b}"], "unknown placeholder {b} (hint: write {{b}}"),
        (["-P", "a=1", "--", "true", "{a}", "{a"], "'{a': '{' is not part of a placeholder"),
        (["-P", "errors=1", "--", "true", "{errors}"], "the results have a column errors"),
        (["-P", "repeat=1", "--", "true", "{repeat}"], "the results have a column repeat"),
        (["-P", "a=1", "--before", "x {b}", "--", "true", "{a}"], "unknown placeholder {b}"),
        (["-P", "a=1", "--before", "'x", "--", "true", "{a}"], "''x': no closing quotation"),
        (["-P", "a=1", "--after", " ", "--", "true", "{a}"], "no command given"),
        (["-P", "a=1", "--client", "{b}", "--", "true", "{a}"], "--client: unknown placeholder {b}"),
        (["-P", "a=1", "--client", "{", "--", "true", "{a}"], "'{' is not part of a placeholder"),
        (["-P", "a=1", "--repeat", "0", "--", "true", "{a}"], "0 is not in the range"),
        (["-P", "a=1", "--order", "up", "--", "true", "{a}"], "'up' is not one of 'random', 'given'"),
        (["-P", "a=1", "--duration", "0", "--", "true", "{a}"], "must be at least 1 s"),
        (["-P", "a=1", "--duration", "9s", "--warm-up", "9s", "--", "true", "{a}"], "--warm-up must be shorter"),
        (["-P", "a=1", "--items-per-op", "b", "--", "true", "{a}"], "'b' is not a parameter (hint: use one of a)"),
        (["-P", "a=1", "--items-per-op", "", "--", "true", "{a}"], "'' is not a parameter"),
        (["-P", "a=1,ONE", "--items-per-op", "a", "--", "true", "{a}"], "the value 'ONE' of a is not a number"),
        (["-P", "a=0..2", "--items-per-op", "a", "--", "true", "{a}"], "the value '0' of a is not a number"),
        (["-P", "a=-1", "--items-per-op", "a", "--", "true", "{a}"], "the value '-1' of a is not a number"),
        (["-P", "a=1e3", "--items-per-op", "a", "--", "true", "{a}"], "the value '1e3' of a is not a number"),
        (["-P", "a=nan", "--items-per-op", "a", "--", "true", "{a}"], "the value 'nan' of a is not a number"),
        (
            ["-P", "items_per_s=1", "--items-per-op", "items_per_s", "--", "true", "{items_per_s}"],
            "the results have a column items_per_s",
        ),
        (["-P", "a=1", "--resume", "--", "true", "{a}"], "--resume requires -o DIR"),
        (["-P", "a=1", "--fail-if", "x > 1", "--", "true", "{a}"], "No such option"),
        (["-P", "a=1", "--client-host", "ssh://h", "--", "true", "{a}", "{{host}}"], "cannot contain a literal {host}"),
        (["-P", "host=1", "--client-host", "ssh://h", "--", "x", "{host}"], "{host} has a meaning of its own"),
        ([*MANY, "--", "true", "{a}", "{b}"], "1,600 runs (hint: use fewer values, or --yes)"),
        ([*MANY, "-P", "c=1..100", "--yes", "--", "true", "{a}{b}{c}"], "160,000 runs are too many"),
        (["-P", "a=1", "--", "no-such-program", "{a}"], "no-such-program: command not found"),
        (["-P", "a=1", "--before", "no-such-program", "--", "true", "{a}"], "no-such-program: command not found"),
        (["-P", "a=1", "http://[", "--", "true", "{a}"], "http://["),
    ],
)
def test_a_malformed_sweep_is_refused(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", *arguments]) in (1, 2)
    errors = capsys.readouterr().err
    assert message in " ".join(errors.split()), errors
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("answer", "goes_on"), [("y\n", True), ("n\n", False), ("", False)])
def test_many_runs_are_confirmed_on_a_terminal(
    answer: str, goes_on: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []

    def confirm(text: str, **_: object) -> None:
        asked.append(text)
        if answer != "y\n":
            raise click.Abort

    opened: list[SweepOptions] = []

    def open_sweep(options: SweepOptions) -> None:
        opened.append(options)
        raise CasstatError("opened")

    monkeypatch.setattr(os, "isatty", lambda _: True)
    monkeypatch.setattr(click, "confirm", confirm)
    monkeypatch.setattr(sweep_program, "opened_sweep", open_sweep)
    code = main(["sweep", "-o", str(tmp_path / "s"), *MANY, "--", "true", "{a}", "{b}"])
    assert asked == ["1,600 runs. Continue?"]
    assert (bool(opened), code) == (goes_on, 1 if goes_on else 130)
    asked.clear()
    main(["sweep", "-o", str(tmp_path / "s"), *MANY, "--yes", "--", "true", "{a}", "{b}"])
    assert asked == []


def test_a_parameter_may_be_used_only_before_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def open_sweep(_: SweepOptions) -> None:
        raise CasstatError("opened")

    monkeypatch.setattr(sweep_program, "opened_sweep", open_sweep)
    main(["sweep", "-o", str(tmp_path / "s"), "-P", "a=1", "--before", "true {a}", "--", "true"])
    assert "opened" in capsys.readouterr().err


def test_the_names_of_columns_are_reserved() -> None:
    for name in COLUMNS:
        with pytest.raises(click.UsageError, match="the results have a column"):
            parameters_of([f"{name}=1"])


def test_names_of_columns_with_items_are_reserved_only_if_the_results_have_them() -> None:
    for name in ITEM_COLUMNS:
        parameters = parameters_of([f"{name}=1", "batch=1"])
        assert items_per_op_of(None, parameters) == ""
        with pytest.raises(click.UsageError, match=f"the results have a column {name}"):
            items_per_op_of("batch", parameters)


def test_numbers_of_items_are_positive_integers_or_decimals() -> None:
    assert items_per_op_of("batch", parameters_of(["c=ONE", "batch=1,2.5,0.5,100..300:100"])) == "batch"


def test_words_are_split_as_by_a_shell_before_they_are_filled() -> None:
    words = words_of("--before", "run '{a} b' {a}")
    assert filled_except_hosts(words, {"a": "x y"}) == ("run", "x y b", "x y")
    assert words_of("--before", None) == ()


def test_directories_of_runs_have_readable_and_different_names() -> None:
    assert run_folder_name(2, 30, {"c": "5", "batch": "200"}, 1) == "runs/02-c=5-batch=200-r1"
    assert run_folder_name(1, 2, {"c": "../x y"}, 2) == "runs/1-c=..-x-y-r2"
    assert run_folder_name(1, 2, {"c": "é/"}, 1) != run_folder_name(2, 2, {"c": "è/"}, 1)
    assert len(run_folder_name(1, 2, {"c": "x" * 200}, 1)) < 120


def test_the_settings_of_a_run_have_its_values() -> None:
    record = RecordSettings(("load", "{c}", "{host}", "{{}}"), tags=(("t", "1"), ("c", "x")), clients=("{c}.csv",))
    options = SweepOptions(record, parameters_of(["c=5"]))
    planned = PlannedRun(1, 0, {"c": "5"}, {"c": "5"}, 2, "runs/1")
    settings = record_settings(options, "load", planned, Path("sweep"))
    assert settings.command == ("load", "5", "{host}", "{}")
    assert settings.clients == ("5.csv",)
    assert dict(settings.tags) == {"t": "1", "c": "5", "repeat": "2"}
    assert (settings.name, settings.folder) == ("load c=5 r2", Path("sweep/runs/1"))
    assert replace(planned, published={"c": "5", "b": "x\ny"}).combination == "c=5 b=x y"

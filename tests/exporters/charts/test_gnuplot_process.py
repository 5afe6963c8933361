"""The gnuplot process: failures are reported in one line, and its run time is limited."""

import os
from pathlib import Path

import pytest

from exporters.charts.gnuplot_page import GnuplotError, draw


def program(folder: Path, text: str) -> str:
    """Write a shell script that stands in for gnuplot, and return its path."""
    path = folder / "fake"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def script(folder: Path, text: str = "") -> Path:
    path = folder / "overview.gp"
    path.write_text(text)
    return path


def test_without_gnuplot_the_error_names_its_package(tmp_path: Path) -> None:
    with pytest.raises(GnuplotError, match=r"install the gnuplot-nox package"):
        draw([script(tmp_path)], program="no-such-gnuplot")


def test_a_failure_contains_gnuplots_message(tmp_path: Path) -> None:
    path = script(tmp_path, "set terminal pngcairo\nplot 'none.tsv'\n")
    with pytest.raises(GnuplotError) as caught:
        draw([path])
    message = str(caught.value)
    assert message.startswith(f"{path}: gnuplot: ")
    assert "\n" not in message
    assert "none.tsv" in message


def test_a_failure_without_a_message_reports_the_exit_code(tmp_path: Path) -> None:
    with pytest.raises(GnuplotError, match="exit code 7"):
        draw([script(tmp_path)], program=program(tmp_path, "exit 7"))


def test_gnuplot_is_stopped_after_the_timeout(tmp_path: Path) -> None:
    with pytest.raises(GnuplotError, match=r"did not finish within 0\.1 s"):
        draw([script(tmp_path)], program=program(tmp_path, "exec sleep 60"), timeout_s=0.1)


def test_a_failure_does_not_affect_other_plots(tmp_path: Path) -> None:
    good, bad, worse = (tmp_path / f"{name}.gp" for name in ("good", "bad", "worse"))
    good.write_text("set output 'good.txt'\nset terminal dumb\nplot x\n")
    bad.write_text("nonsense\n")
    worse.write_text("more nonsense\n")
    with pytest.raises(GnuplotError, match=r"bad\.gp.*and 1 more"):
        draw([bad, worse, good])
    assert (tmp_path / "good.txt").exists()


def test_shell_syntax_in_a_path_is_not_executed(tmp_path: Path) -> None:
    folder = tmp_path / "a $(touch proof) `touch proof`; touch proof #"
    folder.mkdir()
    (folder / "a.gp").write_text("print 1\n")
    assert draw([folder / "a.gp"]) == [folder / "a.png", folder / "a.svg"]
    assert not any("proof" in name for _, _, names in os.walk(tmp_path) for name in names)


def test_user_settings_are_ignored(tmp_path: Path) -> None:
    (tmp_path / ".gnuplot").write_text("print nonsense\nset print 'executed'\nprint 1\nexit status 3\n")
    path = script(tmp_path, "set print 'drawn'\nprint 1\n")
    assert draw([path], environ={**os.environ, "HOME": str(tmp_path)}) == [
        path.with_suffix(".png"),
        path.with_suffix(".svg"),
    ]
    assert (tmp_path / "drawn").exists()
    assert not (tmp_path / "executed").exists()

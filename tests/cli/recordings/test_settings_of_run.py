"""The settings of a run's cluster are read from its recordings, and those of two runs are compared."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from cli.errors import CasstatError
from cli.recordings.merge_program import recording_views
from cli.recordings.recording_arguments import MergeSettings
from cli.recordings.views import View, completed
from cli.runs import run_summary
from cli.runs.run_views import run_views
from collector.merge.grid import Grid, NodeInterval
from collector.merge.merge_job import NodeRun
from collector.merge.node_settings import NodeSettings, settings_of, size_text
from collector.model.metric import Series
from collector.model.snapshot import Derived, Rate, Sample, Tick
from collector.printable import MAX_LINE_CHARS
from collector.recording.header import Header
from collector.runs.run import Run, RunCommand
from collector.runs.run_file import write_run
from exporters.charts.merged_plot_data import footer, node_rows
from exporters.results.comparison.run_settings import SETTINGS, RunSettings, differing_settings, settings_texts
from tests.cli.recordings.runs_with_settings import CLUSTER, DC, RACK, SCHEMA, VERSION, run_with_settings, settings
from tests.collector.merge.interval_columns import columns_of
from tests.every import every


def run_settings(folder: Path) -> RunSettings:
    return completed(run_summary.run_settings(run_views(folder)))


def texts_of(run: RunSettings) -> dict[str, str]:
    return {setting.name: setting.value(run) for setting in SETTINGS}


def test_a_size_has_three_digits() -> None:
    sizes = (0, 999, 999.4 * 2**20, 999.7 * 2**20, 2**40, 999.7 * 2**40, 12_345 * 2**40)
    assert list(map(size_text, sizes)) == ["0 B", "999 B", "999 MiB", "0.976 GiB", "1 TiB", "1000 TiB", "12345 TiB"]


def test_what_makes_a_run_reproducible_is_in_its_summary_and_absent_if_unknown(tmp_path: Path) -> None:
    def node(number: int, heap: float) -> NodeSettings:
        values: dict[Series, Derived] = {
            ("casstat_machine_processors",): "8 x Model",
            ("cassandra_jvm_name",): "OpenJDK",
            ("cassandra_jvm_version",): "17.0.1",
            ("cassandra_keyspace_replication", "ks"): "SimpleStrategy {replication_factor=3}",
            ("cassandra_keyspace_replication", "system_auth"): "SimpleStrategy {replication_factor=1}",
            ("cassandra_jvm_heap_max_bytes",): heap,
            ("cassandra_jvm_gc_seconds_total", "G1 Young Generation"): Rate(0.0, 1.0),
            ("cassandra_requests_by_consistency_total", "Read", "QUORUM"): Rate(5.0, 1.0),
            ("cassandra_requests_by_consistency_total", "Read", "ONE"): Rate(0.0, 1.0),
        }
        sample = Sample(f"n{number}", Tick(1.0), values, {})
        columns = columns_of(f"n{number}", Header("1", 1.0), Grid(1.0), {0: NodeInterval(sample, 1)})
        return settings_of(NodeRun(columns))

    nodes = {f"n{number}": node(number, heap) for number, heap in enumerate((2**31, 2**31, 2**29))}
    run = Run("r", 0.0, 1.0, "0.1.0")
    known = settings_texts(RunSettings(run, nodes))
    assert {name: text for name, text in known.items() if name not in ("number of nodes", "source", "command")} == {
        "casstat version": "0.1.0",
        "processors": "8 x Model",
        "JVM": "OpenJDK 17.0.1",
        "heap": "2 GiB (n0, n1); 512 MiB (n2)",
        "garbage collectors": "G1 Young Generation",
        "replication": "ks: SimpleStrategy {replication_factor=3}",
        "consistency": "Read QUORUM",
    }


def test_settings_that_are_read_only_before_the_run_are_those_of_the_run(tmp_path: Path) -> None:
    run_with_settings(tmp_path, [settings(0), settings(1)])
    assert run_settings(tmp_path).nodes == {
        f"n{number}": NodeSettings("5.0.8", "v1", "c", "dc1", f"r{number}", "jolokia") for number in (0, 1)
    }


def test_the_last_reading_in_the_run_takes_precedence(tmp_path: Path) -> None:
    run_with_settings(tmp_path, [settings(0)], {SCHEMA: "v2"})
    assert run_settings(tmp_path).nodes["n0"] == NodeSettings("5.0.8", "v2", "c", "dc1", "r0", "jolokia")


def test_the_settings_of_a_run_describe_its_cluster_and_its_measurement(tmp_path: Path) -> None:
    run_with_settings(tmp_path, [settings(0), settings(0), settings(1, **{VERSION: "4.1.9"})])
    assert settings_texts(run_settings(tmp_path)) == {
        "Cassandra version": "4.1.9, 5.0.8",
        "schema version": "v1",
        "number of nodes": "3",
        "distribution over racks": "dc1/r0: 2 nodes, dc1/r1: 1 node",
        "cluster name": "c",
        "casstat version": "0.1.0",
        "source": "jolokia",
        "interval": "1 s",
        "command": "none",
    }


def test_unknown_settings_are_not_different(tmp_path: Path) -> None:
    run_with_settings(tmp_path / "a", [settings(0), {}])
    run_with_settings(tmp_path / "b", [{}, {}])
    a, b = (run_settings(tmp_path / name) for name in "ab")
    assert texts_of(a)["distribution over racks"] == ""
    assert texts_of(b)["Cassandra version"] == ""
    assert list(differing_settings([a], [b])) == []


@pytest.fixture
def plain(tmp_path: Path) -> RunSettings:
    """The settings of a run of one node."""
    run_with_settings(tmp_path / "plain", [settings(0)])
    return run_settings(tmp_path / "plain")


@every(
    "series, text, warning",
    [
        (VERSION, "4.1.9", "not comparable: the Cassandra version is 5.0.8 in A and 4.1.9 in B"),
        (SCHEMA, "v2", "not comparable: the schema version is v1 in A and v2 in B"),
        (RACK, "r7", "not comparable: the distribution over racks is dc1/r0: 1 node in A and dc1/r7: 1 node in B"),
        (DC, "dc2", "not comparable: the distribution over racks is dc1/r0: 1 node in A and dc2/r0: 1 node in B"),
        (CLUSTER, "d\x1b", "possibly not comparable: the cluster name is c in A and d? in B"),
    ],
)
def test_a_difference_in_a_setting_is_a_warning(
    tmp_path: Path, plain: RunSettings, series: str, text: str, warning: str
) -> None:
    run_with_settings(tmp_path / series, [settings(0, **{series: text})])
    assert list(differing_settings([plain], [run_settings(tmp_path / series)])) == [warning]


def test_a_difference_in_what_makes_a_run_reproducible_is_a_warning_except_for_the_size_of_the_data() -> None:
    run = Run("r", 0.0, 1.0, "0.1.0")
    a, b = (
        RunSettings(run, {"n0": NodeSettings(heap=heap, replication=f"ks: {copies}", data=heap)})
        for heap, copies in (("1 GiB", 2), ("2 GiB", 3))
    )
    assert list(differing_settings([a], [b])) == [
        "possibly not comparable: the heap is 1 GiB in A and 2 GiB in B",
        "possibly not comparable: the replication is ks: 2 in A and ks: 3 in B",
    ]


def test_the_warning_about_two_commands_shows_where_they_differ() -> None:
    words = ["cassandra-stress", "mixed", *(f"option-{number}=value" for number in range(20))]
    for index in (0, 1, 5, 20, 21):
        b = [*words]
        b[index] = "different"
        sides = [
            [RunSettings(Run("r", 0.0, 1.0, "0.1.0", command=RunCommand(tuple(command), 0.0, 1.0, 0)))]
            for command in (words, b)
        ]
        (warning,) = differing_settings(*sides)
        assert re.search(rf" is .*{words[index]}.* in A and .*different.* in B$", warning)
        assert len(warning) <= MAX_LINE_CHARS


def test_a_run_that_has_not_ended_has_no_settings(tmp_path: Path) -> None:
    run = run_with_settings(tmp_path, [settings(0)])
    write_run(tmp_path, replace(run, end_s=None))
    with pytest.raises(CasstatError, match="the run has not ended"):
        run_settings(tmp_path)


def test_a_plot_shows_a_version_that_is_read_only_before_the_run(tmp_path: Path) -> None:
    run_with_settings(tmp_path, [settings(0)])
    result, _ = View(recording_views(MergeSettings((tmp_path,)), quiet=True), node_rows).merged()
    assert footer(result)[0] == "Cassandra 5.0.8"

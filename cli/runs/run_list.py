"""Lists runs on disk and on agents, and shows one of them."""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cli.errors import CasstatError, echo, note
from cli.parameters.access_options import JolokiaSettings
from cli.recordings.object_storage import metadata_copies
from cli.recordings.recording_arguments import read_run_in
from cli.run_folder import RUNS_FOLDER, RUNS_SUBFOLDER, is_being_recorded, recovery_hint
from cli.runs.agent_clients import agent_clients
from cli.runs.run_summary import SUMMARY_FILE, read_summaries
from collector.agents.agent_client import AgentClient
from collector.agents.agent_connection import AgentError
from collector.file_access import file_errors
from collector.printable import count_text, local_time, one_line
from collector.recording.object_store import is_object_url
from collector.runs.cluster_members import member_texts
from collector.runs.run import Run, RunCommand, RunNode, step_text
from collector.runs.run_file import FILE, content_of, is_finite, is_run
from exporters.results.summary.phase_summary import nodes_text, occurring, time_of_day
from exporters.results.summary.summary_text import number_text, summary_lines
from exporters.rows.columns import Cell
from exporters.rows.operation_columns import TOTAL_RATE
from exporters.texts import aligned_lines

HEADERS = ("START", "DURATION", "NAME", "TAGS", "READS/s", "p99 ms", "WRITES/s", "p99 ms", "WHERE")
# Added before READS/s if any run has other operations.
_ALL_OPERATIONS = "OPS/s"
# More pages than an agent keeps runs for.
MAX_PAGES = 50
# The number of text columns at the beginning of a row.
_TEXTS = 4
# The settings that other lines contain.
_SHOWN_SETTINGS = ("command", "number of nodes")


@dataclass(frozen=True)
class ListedRun:
    """A run in a list.

    end_s   None if the run has not ended, or if its recorder died.
    where   its directory, or the address of its agent.
    values  the values of its summary; empty if there is none.
    """

    name: str
    begin_s: float
    end_s: float | None
    where: str
    tags: Mapping[str, str]
    values: Mapping[str, Cell]


def listed_runs(locations: Sequence[str], agent: JolokiaSettings) -> list[ListedRun]:
    """Return the runs in directories or on agents, oldest first. Raises CasstatError and click.UsageError."""
    runs: list[ListedRun] = []
    clients = agent_clients(agent)
    for location in locations or (str(RUNS_FOLDER),):
        if is_object_url(location):
            with metadata_copies(location, (FILE, SUMMARY_FILE)) as (copies, name):
                stored = _in_folder(copies)
                runs += [replace(run, where=f"{name}/{Path(run.where).relative_to(copies)}") for run in stored]
            continue
        folder = Path(location)
        if folder.is_dir() or not locations:
            runs += _in_folder(folder)
            continue
        (address,) = clients.addresses([location])
        try:
            with closing(clients.client(address)) as client:
                runs += _on_agent(client)
        except AgentError as error:
            raise CasstatError(f"{error} (hint: give a directory or the address of an agent)") from None
        except (KeyError, TypeError):
            raise CasstatError(f"{address.url}: the response is not a list of runs") from None
    return sorted(runs, key=attrgetter("begin_s"))


def _in_folder(folder: Path) -> list[ListedRun]:
    """Return the runs in a directory, such as those of a sweep or a search, or the run itself. Raises CasstatError.

    Sweeps and searches in the directory are noted.
    """
    with file_errors(folder, CasstatError):
        paths = [folder] if is_run(folder) else _runs_of_experiment(folder) or sorted(folder.iterdir())
        for path in paths:
            if of_experiment := _runs_of_experiment(path):
                note(f"{path}: {count_text(len(of_experiment), 'run')} (hint: list them with 'casstat runs {path}')")
    runs = []
    for path in filter(is_run, paths):
        try:
            run = read_run_in(path)
        except CasstatError as error:
            note(str(error))
            continue
        summaries = read_summaries(path)
        values = summaries[-1].values if summaries else {}
        runs.append(ListedRun(run.name, run.begin_s, run.end_s, str(path), run.tags, values))
    return runs


def _runs_of_experiment(folder: Path) -> list[Path]:
    """Return the directories of the runs of a sweep or search; none if it is something else or cannot be read."""
    with suppress(OSError):
        return sorted(filter(is_run, (folder / RUNS_SUBFOLDER).iterdir()))
    return []


def _on_agent(client: AgentClient) -> list[ListedRun]:
    """Return the runs on all pages of an agent's list.

    Raises AgentError, and KeyError or TypeError if the list is malformed.
    """
    runs: dict[str, ListedRun] = {}
    path = "/api/v1/runs"
    for _ in range(MAX_PAGES):
        # The list starts over if the agent has deleted the last run of the previous page.
        page = {str(content["id"]): _of_agent(content, client.address.authority) for content in client.json(path)}
        if page.keys() <= runs.keys():
            break
        runs.update(page)
        path = f"/api/v1/runs?after={quote(list(page)[-1], safe='', errors='replace')}"
    else:
        note(f"{client.address.url}: too many runs; only the first {len(runs)} are listed")
    return list(runs.values())


def _of_agent(content: Mapping[str, Any], where: str) -> ListedRun:
    """Convert an entry in an agent's list of runs. Raises KeyError or TypeError if it is malformed."""
    begin_s, end_s = content["begin_s"], content["end_s"]
    if not is_finite(begin_s) or not (end_s is None or is_finite(end_s)):
        raise TypeError
    return ListedRun(str(content["name"]), float(begin_s), end_s, where, {}, {})


def print_runs(runs: Sequence[ListedRun], output: str) -> None:
    """Print the runs as a table, or as a JSON object per line."""
    if output == "json":
        for run in runs:
            echo(json.dumps(asdict(run)))
        return
    more: list[Sequence[str]] = []
    nodes = [nodes_text(run.values) for run in runs]
    texts_count = _TEXTS
    if any(nodes):
        # Figures of a part of the nodes are marked.
        more.append(["NODES", *(text or ("all" if run.values else "-") for text, run in zip(nodes, runs, strict=True))])
        texts_count += 1
    if any(not operation.is_usual for operation in occurring(run.values for run in runs)):
        more.append([_ALL_OPERATIONS, *(number_text(run.values.get(TOTAL_RATE), 0) for run in runs)])
    rows = [
        (*row[:_TEXTS], *(cells[index] for cells in more), *row[_TEXTS:])
        for index, row in enumerate([HEADERS, *map(_row, runs)])
    ]
    for line in aligned_lines(rows, [not texts_count <= column < len(rows[0]) - 1 for column in range(len(rows[0]))]):
        echo(line)


def _row(run: ListedRun) -> tuple[str, ...]:
    return (
        local_time(run.begin_s),
        "-" if run.end_s is None else f"{run.end_s - run.begin_s:.0f} s",
        one_line(run.name),
        one_line(" ".join(f"{key}={value}" for key, value in run.tags.items())) or "-",
        number_text(run.values.get("reads_per_s"), 0),
        number_text(run.values.get("read_p99_ms"), 2),
        number_text(run.values.get("writes_per_s"), 0),
        number_text(run.values.get("write_p99_ms"), 2),
        one_line(run.where),
    )


def show_run(location: str, output: str) -> None:
    """Print the phases, nodes and summary of a run in a directory or in object storage. Raises CasstatError."""
    if is_object_url(location):
        with metadata_copies(location, (FILE, SUMMARY_FILE)) as (folder, _):
            _show(folder, output)
    else:
        _show(Path(location), output)


def _show(folder: Path, output: str) -> None:
    run = read_run_in(folder)
    summaries = read_summaries(folder)
    if output == "json":
        echo(json.dumps({**content_of(run), "summary": [asdict(summary) for summary in summaries]}))
        return
    for line in _lines(folder, run):
        echo(line)
    for name, text in summaries[-1].settings.items() if summaries else ():
        if name not in _SHOWN_SETTINGS:
            echo(f"{one_line(name)}: {one_line(text)}")
    if summaries:
        echo("")
        for line in summary_lines(summaries):
            echo(line)


def _lines(folder: Path, run: Run) -> list[str]:
    if run.end_s is not None:
        state = f"{local_time(run.begin_s)} to {local_time(run.end_s)}, {run.end_s - run.begin_s:.0f} s"
    elif is_being_recorded(folder):
        state = f"{local_time(run.begin_s)}, still being recorded"
    else:
        state = f"{local_time(run.begin_s)}, its recorder died {recovery_hint(folder)}"
    lines = [f"{one_line(run.name)}: {state}"]
    if run.command is not None:
        lines.append(f"command: {one_line(' '.join(run.command.words))}{_ending(run.command)}")
    lines += [f"tag {one_line(key)}: {one_line(value)}" for key, value in run.tags.items()]
    lines += [f"other run at the same time: {one_line(other)}" for other in run.other_runs]
    for phase in run.phases:
        measured = "" if phase.measured else ", not in the summary"
        lines.append(
            f"phase {one_line(phase.name)}: {local_time(phase.begin_s)}, {phase.end_s - phase.begin_s:.0f} s{measured}"
        )
    lines += [f"node {_node_text(node)}" for node in run.nodes]
    lines += member_texts(run.clusters)
    lines += [f"{step_text(step)} at {time_of_day(step.time_s)}" for step in run.clock_steps]
    lines += [f"client host {_node_text(host)}" for host in run.client_hosts]
    return lines


def _ending(command: RunCommand) -> str:
    """Return how a command ended, in parentheses; "" if that is unknown."""
    if command.exit_code is None:
        return ""
    if command.ended_by_duration and command.duration_s is not None and not command.exit_code:
        return f" (ended after {command.duration_s:g} s)"
    return f" (exit status {command.exit_code})"


def _node_text(node: RunNode) -> str:
    clock = node.clocks[-1] if node.clocks else None
    offset = "" if clock is None else f", clock {clock.offset_s:+.4f} s ± {clock.error_s:.4f} s"
    problem = f": {one_line(node.problem)}" if node.problem else ""
    return f"{one_line(node.name or node.address)}: {count_text(node.ticks, 'tick')}{offset}{problem}"

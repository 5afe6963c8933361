"""The documentation agrees with the code, and its commands work."""

import importlib
import re
import shlex
import shutil
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import click
import pytest

from acceptance.readme_walk import commands
from cli.agent.agent_config import settings_of
from cli.command_list import LINE, command_names, description_of
from cli.commands.agent import command as agent_command
from cli.commands.line import command as line_command
from cli.main import main
from cli.runs.run_list import HEADERS as RUN_HEADERS
from cli.simulate.interval_figures import header as simulate_header
from collector.node.catalogue import CATALOGUE
from collector.recording.header import FULL_EVERY
from exporters.catalogue_page import page
from exporters.results.capacity.capacity_output import markdown_text
from exporters.results.capacity.search import SearchResult
from exporters.results.comparison.comparison_output import HEADERS as COMPARISON_HEADERS
from exporters.results.summary.phase_summary import PhaseSummary
from exporters.results.summary.summary_text import summary_lines
from exporters.rows.printed_rows import text_header as line_header
from exporters.rows.view import View
from exporters.sinks.parts.all_sinks import sink_urls
from tests.collector.runs.run_schema import run_schema
from tests.every import every
from tests.exporters import golden

ROOT = Path(__file__).parent.parent
PACKAGES = ("collector", "exporters", "dashboards", "cli")
TUTORIALS = ("README.md", "docs/tutorial-terminal.md", "docs/tutorial-grafana.md", "docs/tutorial-plots.md")
RECORDINGS = ROOT / "tests/compatibility/recordings/format_2"
# These commands read recordings or write files; all others need a node, an agent or a store.
WITHOUT_SERVERS = re.compile(r"casstat (journal|replay|merge|plot|top --replay|dashboards write|metrics)\b")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/howto/*.md")])


def command_lines(page: str) -> list[str]:
    """Return the casstat command lines in a page's console blocks, in order."""
    return [line for line, _ in commands((ROOT / page).read_text()) if line.startswith("casstat")]


def needs_no_server(line: str) -> bool:
    return WITHOUT_SERVERS.match(line) is not None


def arguments(line: str) -> list[str]:
    """Return the arguments of a command line, without redirections or `&`."""
    return list(takewhile(lambda word: word not in (">", "&"), shlex.split(line)[1:]))


# A comment may follow, and a command may continue on the next line.
QUOTED_COMMAND = re.compile(r"^\$ (casstat\b(?:.*\\\n)*.*?)(?:\s+# .*)?$", re.MULTILINE)
COMMAND_LINES = sorted(
    {re.sub(r"\\\n\s*", "", line) for path in PAGES for line in QUOTED_COMMAND.findall(path.read_text())}
)


def test_the_metrics_page_is_current() -> None:
    wanted = page(metric for _, metric in sorted(CATALOGUE.items()))
    assert (ROOT / "docs" / "metrics.md").read_text() == wanted, "run `make metrics`"


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_pages_for_contributors_are_short(page: str) -> None:
    assert len((ROOT / page).read_text().splitlines()) <= 300


def test_link_targets_exist() -> None:
    links = [(path, target) for path in PAGES for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text())]
    local = [(path, target) for path, target in links if not target.startswith("https://")]
    assert len(local) > 20
    assert [(path, target) for path, target in local if not (path.parent / target).exists()] == []


def command_of(name: str) -> click.Command:
    command: click.Command = importlib.import_module(f"cli.commands.{name}").command
    return command


def all_commands() -> dict[str, click.Command]:
    """Return all commands and subcommands by name."""
    commands = {name: command_of(name) for name in (LINE, *command_names())}
    for name, command in list(commands.items()):
        if isinstance(command, click.Group):
            commands |= {f"{name} {sub}": subcommand for sub, subcommand in command.commands.items()}
    return commands


COMMANDS = all_commands()


def test_the_readme_mentions_every_command() -> None:
    readme = (ROOT / "README.md").read_text()
    for name in command_names():
        assert f"casstat {name}" in readme


@every("name", COMMANDS)
def test_a_command_summary_is_short_and_has_no_period(name: str) -> None:
    summary, _, rest = (COMMANDS[name].help or "").partition("\n")
    assert summary[0].isupper()
    assert len(summary) <= 60
    assert not summary.endswith(".")
    assert not rest.partition("\n")[0].strip()


@every("name", command_names())
def test_the_list_of_commands_shows_their_summaries(name: str) -> None:
    assert description_of(name).summary == (COMMANDS[name].help or "").partition("\n")[0]


@every("name", COMMANDS)
def test_option_help_is_a_sentence_that_does_not_start_with_a_question_word(name: str) -> None:
    options = [option for option in COMMANDS[name].params if isinstance(option, click.Option) and not option.hidden]
    for option in options:
        text, _, default = (option.help or "").partition("  [")
        assert re.match(r"(?!Who|What|When|Where|Which|Whether|How|Why)[A-Z]", text), option.name
        assert text.endswith((".", "…")), option.name
        assert not default or default.endswith("]"), option.name


def test_options_of_the_same_name_take_the_same_kind_of_value() -> None:
    kinds: dict[str, set[tuple[str, str]]] = {}
    for option in (option for command in COMMANDS.values() for option in command.params):
        if isinstance(option, click.Option) and not option.is_flag:
            for flag in option.opts:
                kinds.setdefault(flag, set()).add((option.type.name, option.metavar or ""))
    # --with takes runs in `compare`. --baseline takes a tag in `compare` and a run in `report`.
    # --nodes takes names in `merge` and a count in `demo up`; in `top`, --columns also accepts a column set.
    # --seed takes a node in `top` and `record`, and the seed of random numbers in `simulate`.
    # --rate takes a range in `capacity` and a rate in `demo load`.
    # -o takes a disk in the default command, as in the original script, and an output elsewhere.
    expected = {"--nodes", "--columns", "--with", "--baseline", "--seed", "--rate", "-o"}
    assert {flag for flag, kind in kinds.items() if len(kind) > 1} == expected


def test_help_states_the_default_of_journal_sync() -> None:
    texts = [
        option.help or ""
        for command, name in ((line_command, "journal_sync"), (agent_command, "journal_sync"))
        for option in command.params
        if option.name == name and isinstance(option, click.Option)
    ]
    assert [text.endswith(f"[frame: every {FULL_EVERY} ticks]") for text in texts] == [True, True]


def parse(line: str) -> None:
    """Parse a command line without running it. Raises click.UsageError for any error except an invalid path."""
    words = arguments(line)
    name = words.pop(0) if words and words[0] in command_names() else LINE
    command = command_of(name)
    if isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    # An option such as `--list` prints and exits.
    with suppress(click.exceptions.Exit):
        try:
            command.make_context("casstat", words)
        except click.MissingParameter:
            raise
        except click.BadParameter as error:
            if error.param is None or not isinstance(error.param.type, click.Path):
                raise


@every("line", COMMAND_LINES)
def test_every_documented_command_is_understood(line: str) -> None:
    parse(line)


@pytest.mark.parametrize(
    "line",
    [
        "casstat --interval soon",
        "casstat dashboards push http://grafana:3000",
        "casstat dashboards write --for graphite out",
        "casstat replay",
        "casstat plot --size 0x0 run1",
    ],
)
def test_a_wrong_or_missing_value_in_a_documented_command_would_be_found(line: str) -> None:
    with pytest.raises(click.BadParameter):
        parse(line)


def test_paths_in_documented_commands_need_not_exist() -> None:
    parse("casstat dashboards push https://grafana:3000 --token-file token --ca ca.pem")


@pytest.fixture
def run_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a new directory with two nodes' recordings, under the names that the pages use, and return its path."""
    for node, address in (("node-a", "127.0.0.1"), ("node-b", "127.0.0.2")):
        for folder in ("run1", "load-test"):
            shutil.copytree(RECORDINGS / node, tmp_path / folder / address)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("page", [name for name in TUTORIALS if any(map(needs_no_server, command_lines(name)))])
def test_commands_on_recordings_succeed_in_order(
    page: str, run_directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for line in filter(needs_no_server, command_lines(page)):
        assert main(arguments(line)) == 0, line
        assert capsys.readouterr().out, line


def test_every_column_of_the_text_output_is_explained_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    explained = set(re.findall(r"`([^`\s]+)`", readme[readme.index("## Columns") :]))
    for column in View(disk="vda", interface="eth0", percentiles=True).text_columns:
        in_a_range = re.fullmatch(r"%(system|idle|iowait)|Rd95th|Wrt99th", column.header)
        assert column.header in explained or in_a_range, column.header


def printed_headers() -> list[list[str]]:
    """Return the words of the headers of tables that casstat prints, and those of the last line of `casstat top`."""
    phase = PhaseSummary("main", 0.0, 60.0, {"client_ops_per_s": 1}, {})
    summaries = [phase, replace(phase, values={"nodes": 1, "nodes_missing": 1})]
    lines = [line for summary in summaries for line in summary_lines([summary]) if line.startswith("phase")]
    lines += [line for line in markdown_text(SearchResult((), ()), ()).splitlines() if line.startswith("| step")]
    lines += [" ".join(RUN_HEADERS), " ".join(COMPARISON_HEADERS), *simulate_header([""], serves=False)]
    views = [View(disk="vda", interface="lo", percentiles=True, compactions=shown) for shown in (False, True)]
    lines += [line_header(view, view.text_columns) for view in views]
    for name in ("sweep.txt", "sweep_items.txt"):
        _, first, rest = (ROOT / "tests/golden" / name).read_text().splitlines()[0].partition("ops/s")
        lines.append(first + rest)
    last_lines = [line for line in (ROOT / "tests/golden/top.200x60.txt").read_text().splitlines() if "F1" in line]
    keys = words_of(last_lines[0])
    # The screen's width cuts the last line off.
    return [*map(words_of, lines), *(keys[:count] for count in range(len(keys) // 2, len(keys) + 1))]


def words_of(line: str) -> list[str]:
    return line.replace("|", " ").split()


def is_outdated(line: str, headers: list[list[str]]) -> bool:
    """Return whether most words of a header are in the line, but neither the whole header nor its beginning and `…`.

    Other columns, such as the parameters of a sweep, may come first.
    """
    words = words_of(line)
    counts = Counter(words)
    similar = [
        header
        for header in headers
        if not counts.keys().isdisjoint(header) and (counts & Counter(header)).total() > len(header) / 2
    ]
    shown, is_cut = (words[:-1], True) if words[-1:] == ["…"] else (words, False)
    ends = [shown[shown.index(header[0]) :] if header[0] in shown else shown for header in similar]
    return bool(similar) and not any(
        end == (header[: len(end)] if is_cut else header) for end, header in zip(ends, similar, strict=True)
    )


def test_quoted_tables_have_the_headers_of_the_code() -> None:
    headers = printed_headers()
    lines = [(path.name, line) for path in PAGES for line in path.read_text().splitlines()]
    assert [(page, line) for page, line in lines if is_outdated(line, headers)] == []


@pytest.mark.parametrize(
    ("line", "outdated"),
    [
        ("c  d  ops/s  errors/s  p99 ms", False),
        ("c  d  ops/s  errors/s  mean ms  p99 ms", True),
        ("ops/s  p99 ms  errors/s", True),
        ("ops/s  errors/s  …", False),
        ("ops/s  mean ms  errors/s  …", True),
        ("operations (ops/s) and errors", False),
    ],
)
def test_a_quoted_header_that_is_not_the_codes_would_be_found(line: str, outdated: bool) -> None:
    assert is_outdated(line, [["ops/s", "errors/s", "p99", "ms"]]) == outdated


def test_every_agent_setting_is_on_its_page() -> None:
    path = ROOT / "docs" / "agent.md"
    before, _, rest = path.read_text().partition("<!-- settings -->\n")
    _, _, after = rest.partition("<!-- /settings -->\n")
    rows = [setting_row(name, option) for name, option in sorted(settings_of(agent_command).items())]
    wanted = "\n".join(
        [before + "<!-- settings -->", "| setting | description |", "|---|---|", *rows, "<!-- /settings -->", after]
    )
    golden.check(path, wanted)


def setting_row(name: str, option: click.Option) -> str:
    default = option.default
    suffix = f" [{default}]" if option.show_default and default not in (None, ()) else ""
    text = " ".join((option.help or "").split()).replace("|", "\\|")
    return f"| `{name}` | {text}{suffix} |"


def undocumented(schema: dict[str, Any], rows: list[tuple[str, str]]) -> set[str]:
    """Return the keys that are only in an object's schema or only in the documentation's rows about the object.

    If a key's value is an object, the key's row must mention the keys of that object, except those of nodes.
    """
    properties: dict[str, dict[str, Any]] = schema["properties"]
    differences = properties.keys() ^ {key for key, _ in rows}
    of_nodes = properties.get("nodes", {}).get("items", {}).get("properties", {}).keys()
    for key, meaning in rows:
        if key != "nodes":
            value = properties.get(key, {})
            kinds = [value, value.get("items", {}), *value.get("anyOf", ())]
            inner = {name for kind in kinds for name in kind.get("properties", ())} - of_nodes
            differences |= {f"{key}.{name}" for name in inner if f"`{name}`" not in meaning}
    return differences


def test_every_key_of_a_runs_file_is_on_its_page() -> None:
    rows = (ROOT / "docs/runs.md").read_text().partition("| key in `run.json` |")[2].partition("\n\n")[0].splitlines()
    cells = [row.strip("| ").split(" | ") for row in rows[2:]]
    keys = [(key, meaning) for names, meaning in cells for key in re.findall(r"`(\w+)`", names)]
    nodes = [key for key, _ in keys].index("nodes") + 1
    schema = run_schema()
    assert undocumented(schema, keys[:nodes]) == set()
    assert undocumented(schema["properties"]["nodes"]["items"], keys[nodes:]) == set()


def test_make_targets_in_the_documentation_exist() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    pages = "".join(path.read_text() for path in PAGES)
    mentioned = set(re.findall(r"`(?:UPDATE_GOLDEN=1 )?make (\w+)`", pages))
    assert "check" in mentioned
    assert mentioned <= targets


def test_the_messages_on_the_troubleshooting_page_exist() -> None:
    code = "\n".join(file.read_text() for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
    code = re.sub(r'"\s*\n\s*f?"', "", code)
    rows = [line for line in (ROOT / "docs/troubleshooting.md").read_text().splitlines() if line.startswith("| `")]
    quoted = [message for row in rows for message in re.findall(r"`([^`]+)`", row.split(" | ")[0])]
    # Upper-case words, numbers and `…` stand for values.
    parts = [part.strip(" :'.") for message in quoted for part in re.split(r"\b[A-Z]{2,}\b|[\d.:]*\d[KMG]?|…", message)]
    assert [part for part in parts if " " in part and part not in code] == []
    assert len(parts) > 20


def test_every_sink_is_in_the_table_of_sinks() -> None:
    table = (ROOT / "docs" / "agent.md").read_text().partition("## Sinks")[2]
    assert [url for url, _ in sink_urls() if f"| `{url.partition('?')[0]}" not in table] == []

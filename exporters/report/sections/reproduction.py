"""The section with what is needed to repeat the run."""

from shlex import join

from collector.redaction.secret_forms import REDACTED
from collector.runs.run import COOL_DOWN, Run
from exporters.report.report_blocks import Block, Command, Paragraph, Section, Table
from exporters.report.report_data import ReportData
from exporters.texts import clock_text, list_text, shown


def reproduction(data: ReportData) -> Section:
    run = data.run
    blocks: list[Block] = []
    if run.command is not None:
        words = [*_options(run), *(run.options or ()), "--", *run.command.words]
        note = f"{REDACTED} stands for a secret." if any(REDACTED in word for word in words) else ""
        nodes = ""
        if run.options is None:
            # The addresses in a run's metadata may be those of private agents, which end with the run.
            names = list_text([shown(node.name or node.address) for node in run.nodes], len(run.nodes))
            nodes = "NODE... "
            note = (
                f"NODE... stands for the addresses of {names or 'the nodes'}. The version of casstat that recorded the"
                f" run did not store --client, --mark-regex, --redact and the options for access to nodes. {note}"
            )
        blocks.append(Command(f"casstat record {nodes}{join(words)}"))
        blocks += [Paragraph(note.strip())] if note else []
    blocks.append(Paragraph(f"Recorded with casstat {shown(run.casstat)}."))
    phases = [
        [
            shown(phase.name),
            clock_text(phase.begin_s, data.zone_s),
            f"{phase.end_s - phase.begin_s:.1f} s",
            "yes" if phase.measured else "no",
        ]
        for phase in run.phases
    ]
    if phases:
        blocks.append(Table("Phases", ["phase", "begin", "time", "in the totals"], phases, 1))
    tags = [[shown(key), shown(value)] for key, value in run.tags.items()]
    if tags:
        blocks.append(Table("Tags", ["tag", "value"], tags, 2))
    return Section("How to reproduce the run", blocks)


def _options(run: Run) -> list[str]:
    """Return the options of `casstat record` that follow from the run's metadata."""
    options = ["--name", run.name]
    options += [word for key, value in run.tags.items() for word in ("--tag", f"{key}={value}")]
    if run.command is not None and run.command.duration_s is not None:
        options += ["--duration", f"{run.command.duration_s:g}s"]
    if run.warm_up_s:
        options += ["--warm-up", f"{run.warm_up_s:g}s"]
    cool_down_s = sum(phase.end_s - phase.begin_s for phase in run.phases if phase.name == COOL_DOWN)
    # Without a cool-down, a run ends a moment after its command. Earlier versions do not state which it was.
    if run.options is None and round(cool_down_s) >= 1:
        options += ["--cool-down", f"{round(cool_down_s)}s"]
    options += [word for host in run.client_hosts if host.address for word in ("--client-host", host.address)]
    options += [word for condition in run.conditions for word in ("--fail-if", condition.text)]
    return options

"""Reads what a step's run recorded: its columns, its intervals, and what was saturated first."""

import json
from dataclasses import dataclass
from pathlib import Path

from cli.errors import CasstatError
from cli.recordings.run_defaults import read_run_in
from cli.runs.completed_summary import attempt
from cli.runs.finish import SUMMARY_FILE
from cli.runs.phase_data import phase_data
from cli.runs.run_saturation import saturation_of
from cli.runs.run_summary import measured_phases
from collector.printable import one_line
from collector.runs.phases import TOTAL
from collector.runs.run import Run, RunPhase
from exporters.capacity.evidence import StepData
from exporters.saturation.resources import GENERATOR
from exporters.saturation.saturation import Saturation

DEFAULT_INTERVAL_S = 1.0


@dataclass(frozen=True)
class RecordedStep:
    """A step's data, its command's exit code, and what was saturated first; None if that is unknown."""

    data: StepData
    exit_code: int
    saturation: Saturation | None

    @property
    def limited(self) -> str:
        """What was saturated first; "" if it is unknown."""
        if self.saturation is None or self.saturation.is_undetermined:
            return ""
        first = self.saturation.first
        return "nothing" if first is None else one_line(f"{first.resource.name} ({first.host}): {first.text}")

    @property
    def is_limited_by_client(self) -> bool:
        """Whether the load generator was saturated first, or nothing was although everything was measured."""
        if self.saturation is None or self.saturation.is_undetermined:
            return False
        return self.saturation.first is None or self.saturation.first.resource is GENERATOR


def recorded_step(folder: Path) -> RecordedStep:
    """Read the run of a step. Raises CasstatError and click.UsageError."""
    run = read_run_in(folder)
    if run.end_s is None or run.command is None or run.command.exit_code is None:
        raise CasstatError(f"{folder}: the run has not ended")
    saturation = attempt(lambda: saturation_of(folder, run))
    return RecordedStep(_data(folder, run), run.command.exit_code, saturation)


def _data(folder: Path, run: Run) -> StepData:
    """Return the data of the measured phases together. Raises CasstatError and click.UsageError."""
    phases = measured_phases(run)
    try:
        summaries = json.loads((folder / SUMMARY_FILE).read_bytes())
    except OSError as error:
        raise CasstatError(f"{error.filename}: {error.strerror}") from None
    except ValueError:
        raise CasstatError(f"{folder / SUMMARY_FILE}: not a summary") from None
    if not phases or not summaries:
        return StepData({}, {})
    whole = RunPhase(TOTAL, phases[0].begin_s, phases[-1].end_s)
    interval_s = max((node.interval_s for node in run.nodes if node.interval_s), default=DEFAULT_INTERVAL_S)
    data = phase_data(folder, [whole], interval_s, has_stated=False)[0][TOTAL]
    kind = next(iter(data.client), "")
    return StepData(summaries[-1]["values"], data.bins(kind), data.server)

"""The directory of a search: its settings and steps in `capacity.json`, and a run per step."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cli.errors import CasstatError
from cli.run_folder import RUNS_SUBFOLDER, STATE_FILE
from cli.runs.common_settings import differences
from collector.file_access import read_whole, replace_file
from collector.printable import one_line
from collector.runs.parameter_sweep import SweepSettings, settings_of_content
from exporters.results.capacity.search import SearchPlan, Step

SCHEMA_VERSION = 2


@dataclass(frozen=True)
class SearchState:
    """What `capacity.json` contains: the search, and the steps that have been completed, with their directories."""

    settings: SweepSettings
    objectives: tuple[str, ...]
    plan: SearchPlan
    steps: tuple[tuple[Step, str], ...] = ()

    def with_step(self, step: Step, folder: str) -> "SearchState":
        return replace(self, steps=(*self.steps, (step, folder)))


def write_state(folder: Path, state: SearchState) -> None:
    """Write the state to a directory. Raises CasstatError."""
    content = {
        "schema_version": SCHEMA_VERSION,
        "settings": asdict(state.settings),
        "objectives": state.objectives,
        "plan": asdict(state.plan),
        "steps": [{**asdict(step), "folder": name} for step, name in state.steps],
    }
    try:
        replace_file(folder / STATE_FILE, (json.dumps(content, indent=1) + "\n").encode())
    except OSError as error:
        raise CasstatError(f"{error.filename or folder}: {error.strerror}") from None


def read_state(folder: Path) -> SearchState:
    """Read the state of a search. Raises CasstatError."""
    path = folder / STATE_FILE
    try:
        content: dict[str, Any] = json.loads(read_whole(path))
        if content["schema_version"] != SCHEMA_VERSION:
            raise CasstatError(f"{path}: written by another version of casstat")
        steps = [dict(step) for step in content["steps"]]
        return SearchState(
            settings_of_content(content["settings"]),
            tuple(map(str, content["objectives"])),
            SearchPlan(**content["plan"]),
            tuple((Step(step["rate"], step["length_s"], step["purpose"]), str(step["folder"])) for step in steps),
        )
    except OSError as error:
        raise CasstatError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise CasstatError(f"{path}: not the state of a search (hint: start a new one with another -o)") from None


def require_same(saved: SearchState, wanted: SearchState, folder: Path) -> None:
    """Raise CasstatError if a directory belongs to another search."""
    found = list(differences(saved.settings, wanted.settings))
    if saved.objectives != wanted.objectives:
        found.append(f"its objectives are '{', '.join(saved.objectives)}' instead of '{', '.join(wanted.objectives)}'")
    if saved.plan != wanted.plan:
        found.append("its rates or step lengths are others")
    if found:
        hint = "use the same, or choose another directory with -o"
        raise CasstatError(one_line(f"{folder}: contains another search: {'; '.join(found)} (hint: {hint})"))


def step_folder(number: int, rate: str) -> str:
    return f"{RUNS_SUBFOLDER}/{number:02}-{rate}"

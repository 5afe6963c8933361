"""The directory of a search: its settings and steps in `capacity.json`, and a run per step."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cli.errors import CasstatError
from cli.parameters.placeholders import placeholders
from cli.runs.unfinished_runs import RUNS_SUBFOLDER
from collector.atomic_file import replace_file
from collector.printable import one_line
from collector.redaction.redactor import Redactor
from exporters.capacity.search import SearchPlan, Step

STATE_FILE = "capacity.json"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class SearchState:
    """What `capacity.json` contains: the search, and the steps that have been completed, with their directories."""

    command: tuple[str, ...]
    objectives: tuple[str, ...]
    plan: SearchPlan
    warm_up_s: float
    steps: tuple[tuple[Step, str], ...] = ()

    def with_step(self, step: Step, folder: str) -> "SearchState":
        return replace(self, steps=(*self.steps, (step, folder)))


def write_state(folder: Path, state: SearchState) -> None:
    """Write the state to a directory. Raises CasstatError."""
    content = {
        "schema_version": SCHEMA_VERSION,
        "command": state.command,
        "objectives": state.objectives,
        "plan": asdict(state.plan),
        "warm_up_s": state.warm_up_s,
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
        content: dict[str, Any] = json.loads(path.read_bytes())
        if content["schema_version"] != SCHEMA_VERSION:
            raise CasstatError(f"{path}: written by another version of casstat")
        steps = [dict(step) for step in content["steps"]]
        return SearchState(
            # Earlier versions did not redact the command.
            redacted_command(tuple(map(str, content["command"]))),
            tuple(map(str, content["objectives"])),
            SearchPlan(**content["plan"]),
            float(content["warm_up_s"]),
            tuple((Step(step["rate"], step["length_s"], step["purpose"]), str(step["folder"])) for step in steps),
        )
    except OSError as error:
        raise CasstatError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CasstatError(f"{path}: not the state of a search (hint: start a new one with another -o)") from None


def redacted_command(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command of a search without the secrets that have a known form."""
    return Redactor(placeholders=frozenset(placeholders(words))).words(words)


def require_same(saved: SearchState, wanted: SearchState, folder: Path) -> None:
    """Raise CasstatError if a directory belongs to another search."""
    differences = [
        name
        for name, before, now in (
            ("command", saved.command, wanted.command),
            ("objectives", saved.objectives, wanted.objectives),
            ("rates or step lengths", saved.plan, wanted.plan),
            ("warm-up", saved.warm_up_s, wanted.warm_up_s),
        )
        if before != now
    ]
    if differences:
        raise CasstatError(
            one_line(
                f"{folder}: the search there has other {', '.join(differences)} (hint: use the same, or another -o)"
            )
        )


def step_folder(number: int, rate: str) -> str:
    return f"{RUNS_SUBFOLDER}/{number:02}-{rate}"

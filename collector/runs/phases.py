"""Divides a run into phases: a warm-up, a main phase, a phase from each mark to the next, and a cool-down."""

from collections.abc import Sequence

from collector.runs.run import RunMark, RunPhase

TOTAL = "total"
"""The name of all measured phases together."""
WARM_UP, MAIN, COOL_DOWN = "warm-up", "main", "cool-down"
"""Names of the phases that are not named by a mark; MAIN lasts from the end of the warm-up to the first mark."""


def phases_of(
    begin_s: float, command_end_s: float, end_s: float, warm_up_s: float, marks: Sequence[RunMark]
) -> tuple[RunPhase, ...]:
    """Return the phases of a run, which are contiguous, have different names, and are not empty.

    The warm-up begins with the command and is followed by MAIN. Each mark between the warm-up and the command's end
    begins a phase with the mark's text as its name; if there are marks within the warm-up, the phase of the last one
    replaces MAIN. The cool-down lasts from the command's end to the run's; marks in it are ignored.
    """
    warm_end_s = min(begin_s + warm_up_s, command_end_s)
    measured = [(warm_end_s, MAIN)]
    for mark in sorted(marks, key=lambda mark: mark.time_s):
        if mark.time_s <= warm_end_s:
            measured = [(warm_end_s, mark.text)]
        elif mark.time_s < command_end_s:
            measured.append((mark.time_s, mark.text))
    ends_s = [*(phase_begin_s for phase_begin_s, _ in measured[1:]), command_end_s]
    phases = [
        RunPhase(WARM_UP, begin_s, warm_end_s, measured=False),
        *(RunPhase(text, at_s, to_s) for (at_s, text), to_s in zip(measured, ends_s, strict=True)),
        RunPhase(COOL_DOWN, command_end_s, end_s, measured=False),
    ]
    return _with_different_names([phase for phase in phases if phase.begin_s < phase.end_s])


def _with_different_names(phases: Sequence[RunPhase]) -> tuple[RunPhase, ...]:
    """Return the phases; a name that is repeated or reserved gets a number."""
    names: set[str] = set()
    renamed = []
    for phase in phases:
        # A mark's text may be a reserved name.
        reserved = {TOTAL, *((WARM_UP, COOL_DOWN) if phase.measured else ())}
        name, number = phase.name, 1
        while name in names | reserved:
            number += 1
            name = f"{phase.name} ({number})"
        names.add(name)
        renamed.append(RunPhase(name, phase.begin_s, phase.end_s, phase.measured))
    return tuple(renamed)

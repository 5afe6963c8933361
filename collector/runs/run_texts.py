"""The texts that agents accept: a run's name, and the text of a mark."""

from collector.printable import one_line
from collector.runs.run import ClockStep

MAX_NAME_CHARS, MAX_TEXT_CHARS = 100, 1000
DEFAULT_NAME = "run"


def require_accepted(what: str, text: object, longest: int) -> None:
    """Raise ValueError unless agents accept a text of at most `longest` characters; `what` names it in the message."""
    if not isinstance(text, str) or not text.strip() or not text.isprintable() or len(text) > longest:
        raise ValueError(f"{what} must be a single line of 1 to {longest} printable characters and must not be blank")


def accepted_name(text: str) -> str:
    """Return a name for a run that agents accept, derived from a text such as a command's name."""
    return one_line(text)[:MAX_NAME_CHARS] or DEFAULT_NAME


def step_text(step: ClockStep) -> str:
    """Return a change of the recorder's clock as text."""
    return f"the recorder's clock was set {'back' if step.step_s < 0 else 'forward'} by {abs(step.step_s):,.1f} s"

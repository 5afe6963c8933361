"""Panel descriptions: the meaning of the signals, and the reasons why they may be absent."""

from dashboards.expression import Difference, Expression, Quantile, Ratio
from dashboards.grafana.panel_model import Line, Panel

DEFAULT_ABSENCE = "Absent if the agent is down, cannot reach the node or does not provide this metric."


def description(panel: Panel) -> str:
    """Return the meaning of a panel's signals, and the reasons why they may be absent."""
    paragraphs = [panel.text] if panel.text else []
    lines = {line.signal.help: line for line in panel.lines}
    for text, line in lines.items():
        paragraphs.append(f"{line.signal.title}: {text}" if len(lines) > 1 else text)
    return "\n\n".join([*paragraphs, *absences(panel)])


def absences(panel: Panel) -> list[str]:
    """Return the distinct reasons why a panel may be empty."""
    if not panel.lines:
        return []
    return list(dict.fromkeys(line.signal.absent or DEFAULT_ABSENCE for line in panel.lines))


def no_value(panel: Panel) -> str:
    """Return the text that an empty panel displays."""
    return " ".join(absences(panel))


def has_quantile(panel: Panel) -> bool:
    """Return whether a panel shows percentiles."""
    return any(isinstance(line.signal.expression, Quantile) for line in panel.lines)


def may_be_undefined(line: Line) -> bool:
    """Return whether a signal may be undefined (NaN in PromQL).

    For example, it may be 0 / 0 or a percentile of no requests.
    """
    return _may_be_undefined(line.signal.expression)


def _may_be_undefined(expression: Expression) -> bool:
    if isinstance(expression, Difference):
        return _may_be_undefined(expression.left) or _may_be_undefined(expression.right)
    return isinstance(expression, Quantile | Ratio)

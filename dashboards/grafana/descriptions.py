"""What panels say of themselves: what it means, and why there may be nothing to see."""

from dashboards.expression import Expression, Quantile, Ratio, Rest
from dashboards.grafana.panel_model import Line, Panel

ALWAYS = "Absent only while the agent is away, or cannot ask the node."


def description(panel: Panel) -> str:
    """Return what a panel's signals mean, and when and why they are absent."""
    lines = [panel.text] if panel.text else []
    helps = {line.of.help: line for line in panel.lines}
    for text, line in helps.items():
        named = len(helps) > 1
        lines.append(f"{line.of.title}: {text}" if named else text)
    return "\n\n".join([*lines, *absences(panel)])


def absences(panel: Panel) -> list[str]:
    """Return why there may be nothing to see, each reason once."""
    if not panel.lines:
        return []
    return list(dict.fromkeys(line.of.absent or ALWAYS for line in panel.lines))


def no_value(panel: Panel) -> str:
    """Return what stands in a panel where there is nothing to see."""
    return " ".join(absences(panel))


def has_quantile(panel: Panel) -> bool:
    """Return whether a panel shows percentiles."""
    return any(isinstance(line.of.expression, Quantile) for line in panel.lines)


def may_be_undefined(line: Line) -> bool:
    """Return whether a signal can be a part of nothing, which PromQL calls NaN."""
    return _undefined(line.of.expression)


def _undefined(expression: Expression) -> bool:
    if isinstance(expression, Rest):
        return _undefined(expression.part) or _undefined(expression.whole)
    return isinstance(expression, Quantile | Ratio)

"""Data centres and racks as rows of the table: when they are shown, and in which order."""

from cli.top.column_sets import set_of
from cli.top.render_context import RenderContext
from cli.top.screen_rows import rows
from cli.top.severity import by_values
from exporters.live.frame import GroupFrame, locations_of
from exporters.live.live_columns import COLUMN_INDEX


def are_wanted(context: RenderContext) -> bool:
    """Return whether the frames should contain groups."""
    return context.view.group is not None or _is_due(context)


def are_shown(context: RenderContext) -> bool:
    """Return whether the table has a row per group instead of a row per node."""
    frame = context.frame
    return frame is not None and bool(frame.groups) and context.view.group is None and _is_due(context)


def group_order(context: RenderContext) -> list[str]:
    """Return the locations of the groups in display order: each data centre, followed by its racks."""
    frame, view = context.frame, context.view
    if frame is None:
        return []
    sign = 1 if view.reverse else -1

    def key(location: str) -> tuple[object, ...]:
        group = frame.groups[location]
        if view.sort == "node":
            return (location,)
        if view.sort in COLUMN_INDEX:
            return by_values(location, [group.cells[COLUMN_INDEX[view.sort]]], sign)
        values = [group.cells[COLUMN_INDEX[name]] for name in set_of(view).worst]
        return (sign * context.severities[worst_index(context, group)], *by_values(location, values, sign))

    in_order = sorted(frame.groups, key=key, reverse=view.sort == "node" and view.reverse)
    dcs = [location for location in in_order if locations_of(location)[0] == location]
    return [location for dc in dcs for location in (dc, *(rack for rack in in_order if _is_rack_of(rack, dc)))]


def worst_index(context: RenderContext, group: GroupFrame) -> int:
    """Return the index of the group's node with the worst problem."""
    return max(group.nodes, key=context.severities.__getitem__)


def selected_group(context: RenderContext) -> str | None:
    """Return the location of the selected group; None if there are no groups."""
    order = group_order(context)
    return context.view.group_cursor if context.view.group_cursor in order else next(iter(order), None)


def _is_due(context: RenderContext) -> bool:
    view, frame = context.view, context.frame
    # A filter selects nodes, so it shows them.
    if context.source != "live" or frame is None or view.filter or view.faults:
        return False
    if view.grouped is not None:
        return view.grouped
    has_groups = any(node.location != frame.nodes[0].location for node in frame.nodes)
    return has_groups and len(frame.nodes) > rows(context)


def _is_rack_of(location: str, dc: str) -> bool:
    return location != dc and locations_of(location)[0] == dc

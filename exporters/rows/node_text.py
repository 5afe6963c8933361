"""The rows of a node as text."""

from collector.merge.merge_job import NodeRun
from exporters.rows.merged_rows import Table
from exporters.rows.tsv_csv import Text, rows_text


def node_text(table: Table, node: NodeRun) -> Text:
    """Return a node's rows as TSV and as CSV; the node's arrays, if there are any, save most of the time."""
    if node.columns is not None:
        # Imported here because the reference merge does not need numpy.
        from exporters.rows.array_text import array_text
        from exporters.rows.column_arrays import NoArrayError

        try:
            return array_text(table, node, node.columns)
        except NoArrayError:
            pass
    return rows_text(table.header, (row for _, row in table.node_rows(node)))

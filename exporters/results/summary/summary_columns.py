"""The names of the columns that a summary can have."""

import re
from difflib import get_close_matches

from collector.merge.cluster_sample import ClusterSample
from collector.model.sample import Sample
from collector.model.snapshot import NEVER
from exporters.results.summary.client_values import PERCENTILES
from exporters.results.summary.error_share import ERROR_SHARE
from exporters.results.summary.phase_coverage import COVERAGE_COLUMNS
from exporters.results.summary.phase_summary import phase_values
from exporters.rows.merged_rows import Choice

_CLIENT = ("ops_per_s", "errors_per_s", ERROR_SHARE, "count", "mean_ms", *(f"{name}_ms" for name in PERCENTILES))
_CLIENT_COLUMN = re.compile(rf"client_(?:[a-z0-9_]+_)?(?:{'|'.join(_CLIENT)})")


def is_summary_column(name: str) -> bool:
    """Return whether a summary can have the column; the operations of client results may have any names."""
    return name in _columns() or bool(_CLIENT_COLUMN.fullmatch(name))


def similar_column(name: str) -> str:
    """Return the column with the most similar name; "" if there is none."""
    return next(iter(get_close_matches(name, [*_columns(), *(f"client_{suffix}" for suffix in _CLIENT)], 1)), "")


def _columns() -> list[str]:
    """Return the columns that do not come from client results."""
    nothing = ClusterSample(Sample("", NEVER, {}, {}), 0)
    return list(dict.fromkeys([*phase_values(Choice(), nothing, 0), *COVERAGE_COLUMNS, ERROR_SHARE]))

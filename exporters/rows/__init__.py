"""Rows of metrics: columns, the view that selects them, and output as text, JSON, CSV, TSV and Parquet."""

"""The definitions of the dashboards, one per file."""

"""The agent: it samples, records, serves and ships until a signal stops it."""

"""The agent: it samples, records, serves and ships until it is told to stop."""

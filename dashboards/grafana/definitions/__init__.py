"""The dashboard definitions, one per file."""

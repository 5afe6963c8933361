"""Parameter types and options shared by several commands."""

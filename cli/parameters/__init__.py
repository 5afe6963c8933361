"""Parameter types and options that several commands share."""

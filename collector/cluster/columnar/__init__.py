"""The vectorised merge. It returns what the plain merge in `collector.cluster` returns."""

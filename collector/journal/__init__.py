"""The journal: what was read of a node, tick by tick, on disk; the one source of truth for all that comes after."""

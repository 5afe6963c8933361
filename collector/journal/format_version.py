"""What the journal's format fixes, in constants that cost nothing to import."""

VERSION = 2
"""Of the format: 2 added sequence numbers and footers."""
FULL_EVERY = 600
"""Ticks from one full record, with which a frame begins, to the next: damage reaches no further."""

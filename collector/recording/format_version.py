"""The version of the journal format and the number of ticks per frame, in a module without imports."""

VERSION = 2
"""The version of the format; version 2 added sequence numbers and footers."""
FULL_EVERY = 600
"""Ticks per frame. Each frame begins with a full record, so damage to one frame does not affect the others."""

"""The alerts; each module defines ALERTS for one subject."""

"""Sinks: stores that samples are pushed to. Each kind is one file, selected by the URL's scheme."""

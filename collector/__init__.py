"""Data model, sources, sampling, recordings, merging and runs; independent of terminal, sinks and settings."""

"""Data model, sources, sampling, recordings and merging. Independent of terminal, sinks and settings."""

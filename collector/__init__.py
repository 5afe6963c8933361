"""Data model, sources, sampling, recordings and merging; independent of the terminal, the sinks and the settings."""

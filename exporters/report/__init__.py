"""The report of a run: one HTML page without references to other files, and the same content as Markdown."""

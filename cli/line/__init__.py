"""The `casstat` line: its settings, the program and its output."""

"""The default command, `line`, which prints one line per interval: its settings, program and output."""

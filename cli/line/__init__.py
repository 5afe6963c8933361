"""The default command, called the line: its settings, program and output."""

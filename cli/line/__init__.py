"""The default command: settings, program and output of the line."""

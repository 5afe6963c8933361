"""One file per command: the file name is the command name, and its docstring's first line is the summary."""

"""One file per command: its name is the command's, its docstring's first line the help shown for it."""

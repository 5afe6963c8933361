"""One file per command: the file name is the command name, the first line of its docstring the summary."""

"""The commands, one per file: the file has the command's name, and the first line of its docstring is the summary."""

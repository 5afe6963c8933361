"""The commands, one per file. Each file has its command's name, and the file's docstring is the command's help."""

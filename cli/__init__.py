"""The command line: the only package that prints, reads the environment or ends the process."""

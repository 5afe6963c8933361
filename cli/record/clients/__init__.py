"""Client hosts: machines on which the command of a run generates load."""

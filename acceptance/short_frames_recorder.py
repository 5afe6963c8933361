"""Runs casstat with short frames and permits small files, so that mutations often hit a frame or file boundary."""

import sys

from cli.parameters import parameter_types
from collector.recording import header

if __name__ == "__main__":
    # Set these constants before importing modules that copy their values.
    parameter_types.MIN_BYTES, header.FULL_EVERY = 1, 6
    from cli.main import main

    sys.exit(main(sys.argv[1:]))

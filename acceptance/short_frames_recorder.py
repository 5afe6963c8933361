"""casstat with short frames and files, so that mutations of a recording often hit a frame or file boundary."""

import sys

from cli.parameters import size_type
from collector.journal import format_version

if __name__ == "__main__":
    # Set before importing the modules that copy these values.
    size_type.MIN_BYTES, format_version.FULL_EVERY = 1, 6
    from cli.main import main

    sys.exit(main(sys.argv[1:]))

"""Entry point for `python -m cli`, which is equivalent to `casstat`."""

import sys

from cli.main import main

sys.exit(main())

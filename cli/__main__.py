"""Entry point of `python -m cli`, the same as `casstat`."""

import sys

from cli.main import main

sys.exit(main())

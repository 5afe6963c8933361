"""`python -m cli` is `casstat`."""

import sys

from cli.main import main

sys.exit(main())

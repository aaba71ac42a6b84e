"""``python -m dgrr``: the command line."""

import sys

from .trace.cli import main

sys.exit(main())

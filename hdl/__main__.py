"""Entry of ``python -m hdl``."""

import sys

from hdl.cli import main

sys.exit(main())

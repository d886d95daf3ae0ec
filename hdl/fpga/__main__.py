"""Entry of ``python -m hdl.fpga``."""

import sys

from hdl.fpga.cli import main

sys.exit(main())

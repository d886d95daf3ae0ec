"""Entry of ``python -m lab.fpga``."""

import sys

from lab.fpga.cli import main

sys.exit(main())

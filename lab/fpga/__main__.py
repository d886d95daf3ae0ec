"""Entry of ``python -m lab.fpga``."""

import sys

from lab.fpga.cli import main

if __name__ == "__main__":
    sys.exit(main())

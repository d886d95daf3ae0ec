"""Entry of ``python -m sim.mutants``."""

import sys

from sim.mutants.judge import main

if __name__ == "__main__":
    sys.exit(main())

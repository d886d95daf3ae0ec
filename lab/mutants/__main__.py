"""Entry of ``python -m lab.mutants``."""

import sys

from lab.mutants.judge import main

if __name__ == "__main__":
    sys.exit(main())

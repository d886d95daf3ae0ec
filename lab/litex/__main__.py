"""``python -m lab.litex``: build the SoC, simulate it, and compare its products with golden's."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.litex.judge import expected
from tools.errors import MeasurementError
from tools.interrupts import ending_on_interrupt
from tools.paths import folder_to_write

__all__ = ["main"]


@ending_on_interrupt("lab.litex", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; status 1 if a product differs, or the build failed."""
    parser = argparse.ArgumentParser(prog="python -m lab.litex", description=__doc__)
    parser.add_argument("-o", "--output", type=folder_to_write, default=Path("build/litex"), metavar="FOLDER")
    given = parser.parse_args(arguments)
    # Only the extra brings LiteX, and --help must not need it.
    from lab.litex.soc import build, run

    try:
        found = run(build(given.output))
    except MeasurementError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    print("\n".join(found))
    if found != expected():
        print("these are not golden's products:\n" + "\n".join(expected()), file=sys.stderr)
        return 1
    print("every product has golden's bits")
    return 0


if __name__ == "__main__":
    sys.exit(main())

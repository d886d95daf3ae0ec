"""Judge `golden.identify` blind on devices, and count sums and seconds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rich.progress import track

from lab.devices.catalogue import DEVICES
from lab.devices.judge import Verdict, judged
from tools.interrupts import ending_on_interrupt
from tools.pages import add_update_docs, publish
from tools.paths import at_least_one
from tools.results import Table, measured

__all__ = ["SUBJECT", "main"]

SUBJECT = "identified devices"

_COLUMNS = ("device", "verdict", "products asked", "sums asked", "seconds")


def _row(name: str, verdict: Verdict) -> tuple[str, ...]:
    found = verdict.found
    if verdict.is_wrong:
        said = "**wrong model**"
    elif verdict.is_missed:
        said = "**not found**"
    else:
        said = "no model, rightly" if found.model is None else f"`{found.reduction}`"
    return name, said, f"{verdict.calls:,}", f"{verdict.sums:,}", f"{verdict.seconds:.1f}"


@ending_on_interrupt("lab.devices", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if a verdict is wrong or a device of the family is not found."""
    parser = argparse.ArgumentParser(prog="python -m lab.devices", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="NAME", help="devices whose names have this part (default: all)")
    parser.add_argument("--without", metavar="PART", help="leave out devices whose names have this part")
    parser.add_argument("--verify", type=at_least_one, default=100_000, help="sums of verification (%(default)s)")
    add_update_docs(parser, "devices", "put the table into docs/identify.md")
    given = parser.parse_args(arguments)
    chosen = [name for name in DEVICES if not given.only or any(part in name for part in given.only)]
    chosen = [name for name in chosen if not given.without or given.without not in name]
    if not chosen:
        parser.error(f"NAME: got {' '.join(given.only)}, must be a part of one of {', '.join(DEVICES)}")
    verdicts = {}
    for name in track(chosen, description="identifying", disable=not sys.stderr.isatty()):
        verdicts[name] = judged(DEVICES[name], verify=given.verify)
        print("  ".join(_row(name, verdicts[name])), flush=True)
    wrong = sum(each.is_wrong for each in verdicts.values())
    missed = sum(each.is_missed for each in verdicts.values())
    conclusion = f"{len(verdicts)} devices: {wrong} wrong verdicts, {missed} of the family not found"
    print(conclusion)
    if given.update_docs:
        table = Table(_COLUMNS, [_row(name, verdict) for name, verdict in verdicts.items()], left=2)
        sources = ["lab.devices", "hdl"]
        publish(measured("devices", sources, subject=SUBJECT, conclusion=conclusion, tables=(table,)))
    return int(bool(wrong or missed))


if __name__ == "__main__":
    sys.exit(main())

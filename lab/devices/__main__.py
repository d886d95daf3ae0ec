"""Judge `golden.identify` blind on devices, and count sums and seconds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rich.progress import track

from lab.devices import members
from lab.devices.device import Device
from lab.devices.judge import Verdict, judged
from lab.gpu.card import skipped
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


def _family(given: argparse.Namespace) -> int:
    """Judge members of the family drawn at random; print a line for each, then the number of those found."""
    count, total = given.family, given.total or "float32"
    if given.update_docs:
        letters = members.record(count, total, given.verify, given.jobs)
    else:
        letters = "".join(members.judge(0, count, total, given.verify, given.jobs))
    print(
        f"{len(letters)} members: "
        + ", ".join(f"{letters.lower().count(each)} {kind}" for each, kind in members.KINDS.items())
    )
    return int("w" in letters.lower())


def _devices(on_card: bool) -> dict[str, Device]:
    """Return the devices: those on a card need PyTorch and Triton, others the RTL and this machine's libraries."""
    if on_card:
        from lab.devices.card import DEVICES
    else:
        from lab.devices.catalogue import DEVICES
    return DEVICES


@ending_on_interrupt("lab.devices", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if a verdict is wrong or a device of the family is not found."""
    parser = argparse.ArgumentParser(prog="python -m lab.devices", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="NAME", help="devices whose names have this part (default: all)")
    parser.add_argument("--card", action="store_true", help="devices of the NVIDIA card of this machine, a Hopper")
    parser.add_argument("--without", metavar="PART", help="leave out devices whose names have this part")
    parser.add_argument("--verify", type=at_least_one, default=100_000, help="sums of verification (%(default)s)")
    parser.add_argument("--family", type=at_least_one, metavar="N", help="judge N random members of the family instead")
    parser.add_argument("--total", choices=("float32", "float16"), help="format of the members' totals (float32)")
    parser.add_argument("--jobs", type=at_least_one, default=2, help="processes that judge members (%(default)s)")
    add_update_docs(
        parser, "devices", "put the table into docs/identify.md; of members, go on with the record that is kept"
    )
    given = parser.parse_args(arguments)
    if given.family:
        if given.only or given.without:
            parser.error("--family: got names of devices with it, must be given without")
        return _family(given)
    if given.total:
        parser.error(f"--total: got {given.total}, must be given with --family")
    if given.card and given.update_docs:
        parser.error(
            "--card: got --update-docs with it, must be given without: the page has this machine's devices alone"
        )
    if given.card and skipped("lab.devices --card"):
        return 0
    devices = _devices(given.card)
    chosen = [name for name in devices if not given.only or any(part in name for part in given.only)]
    chosen = [name for name in chosen if not given.without or given.without not in name]
    if not chosen:
        parser.error(f"NAME: got {' '.join(given.only)}, must be a part of one of {', '.join(devices)}")
    verdicts = {}
    for name in track(chosen, description="identifying", disable=not sys.stderr.isatty()):
        verdicts[name] = judged(devices[name], verify=given.verify)
        print("  ".join(_row(name, verdicts[name])), flush=True)
    wrong = sum(each.is_wrong for each in verdicts.values())
    missed = sum(each.is_missed for each in verdicts.values())
    conclusion = f"{len(verdicts)} devices: {wrong} wrong verdicts, {missed} left without a model that exists"
    print(conclusion)
    if given.update_docs:
        table = Table(_COLUMNS, [_row(name, verdict) for name, verdict in verdicts.items()], left=2)
        sources = ["lab.devices", "hdl"]
        publish(measured("devices", sources, subject=SUBJECT, conclusion=conclusion, tables=(table,)))
    return int(bool(wrong or missed))


if __name__ == "__main__":
    sys.exit(main())

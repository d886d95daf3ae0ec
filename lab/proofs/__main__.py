"""Prove, for every input, that the RTL is right."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from rich.console import Console

from lab.proofs import report
from lab.proofs.catalogue import TIERS, select
from lab.proofs.proof import Answer, Verdict
from lab.proofs.published import FILE, publish_proven, take_proven
from tools.evidence import note
from tools.interrupts import ended_by_interrupts, ending_on_interrupt, whole_in_spite_of_interrupts
from tools.pages import publish
from tools.paths import ROOT, folder_to_write
from tools.results import measured
from tools.share import add_share

__all__ = ["main"]


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab.proofs", description=__doc__)
    parser.add_argument("--tier", choices=TIERS, default="full", help="how much is proven (default %(default)s)")
    parser.add_argument(
        "proofs", nargs="*", metavar="PROOF", help="beginnings of ids such as step/*/cb16 (default: all)"
    )
    add_share(parser, "proofs")
    parser.add_argument("--jobs", type=int, default=2, help="solvers at a time (default %(default)s)")
    parser.add_argument(
        "--folder", type=folder_to_write, default=ROOT / "build" / "formal", help="default: build/formal"
    )
    parser.add_argument("--list", action="store_true", help="list the proofs and stop")
    parser.add_argument(
        "--published", action="store_true", help=f"do not solve again what {FILE.relative_to(ROOT)} says is proven"
    )
    parser.add_argument(
        "--update-docs",
        action="store_true",
        help=f"put the summary into docs/results/proofs.md, and what is proven into {FILE.relative_to(ROOT)}",
    )
    given = parser.parse_args(arguments)
    if given.jobs < 1:
        parser.error(f"--jobs: got {given.jobs}, must be at least 1")
    try:
        given.selected = given.share.of(select(given.tier, given.proofs))
    except ValueError as error:
        parser.error(str(error))
    given.is_whole = given.tier == "full" and given.share.is_whole and not given.proofs
    if given.update_docs and not given.is_whole:
        parser.error("--update-docs: must be given with --tier full and nothing that selects proofs, the table has all")
    return given


def _tell(console: Console, title: str, outcome: Answer, done: int, count: int, started: float) -> None:
    minutes, seconds = divmod(int(time.monotonic() - started), 60)
    line = f"[{done:>{len(str(count))}}/{count}] {minutes:>2}:{seconds:02} {outcome.verdict.value:<8}"
    spent = f"{outcome.seconds:.1f} s{' *' if outcome.cached else ''}"
    remark = f": {outcome.remark}" if outcome.remark else ""
    again = "" if outcome.verdict.is_good else f" (again: python -m lab.proofs '{outcome.id}')"
    style = None if outcome.verdict.is_good else "bold red"
    console.print(f"{line} {title} {spent}{remark}{again}", style=style, markup=False, highlight=False, soft_wrap=True)


@ending_on_interrupt("lab.proofs", "what it has decided is kept, the next run goes on")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the proofs; 0 if each is proven, 1 if one is refuted or undecided, 2 if only tools failed, 130 on Ctrl-C."""
    given = _parse(arguments)
    proofs = given.selected
    if given.list:
        print("\n".join(f"{proof.id}  {proof.title}" for proof in proofs))
        return 0
    console = Console(width=None if sys.stdout.isatty() else 150)
    if given.published:
        console.print(f"{take_proven(given.folder)} formulas are known to be proven", highlight=False)
    started = time.monotonic()
    done: dict[int, Answer] = {}
    with ThreadPoolExecutor(given.jobs) as pool, ended_by_interrupts(pool):
        # The slow ones first, so that none of them is left over at the end.
        order = sorted(range(len(proofs)), key=lambda at: -proofs[at].timeout)
        futures = {pool.submit(proofs[at].run, given.folder): at for at in order}
        for future in as_completed(futures):
            done[futures[future]] = future.result()
            _tell(console, proofs[futures[future]].title, future.result(), len(done), len(proofs), started)
    outcomes = [done[at] for at in range(len(proofs))]
    with whole_in_spite_of_interrupts():
        return _finish(given, console, outcomes)


def _finish(given: argparse.Namespace, console: Console, outcomes: Sequence[Answer]) -> int:
    """Show and write the answers; return the status."""
    console.print(report.table(outcomes))
    given.folder.mkdir(parents=True, exist_ok=True)
    failed = [one for one in outcomes if not one.verdict.is_good]
    only_tools = bool(failed) and all(one.verdict is Verdict.TOOL_ERROR for one in failed)
    if not only_tools:
        report.write_json(outcomes, given.folder / "formal.json")
        (given.folder / "formal.md").write_text(report.markdown(outcomes), encoding="utf-8")
        console.print(f"also in {given.folder / 'formal.md'} and {given.folder / 'formal.json'}", highlight=False)
        if given.is_whole:
            note("formal", report.evidence(outcomes), ["lab.proofs"])
    if given.update_docs and not failed:
        publish_proven(outcomes)
        found = measured(
            "proofs",
            ["lab.proofs"],
            subject=report.SUBJECT,
            conclusion=report.conclusion(outcomes),
            note=report.note(outcomes),
            tables=(report.summary(outcomes),),
        )
        publish(found)
    if failed:
        counts = {verdict: sum(one.verdict is verdict for one in failed) for verdict in Verdict}
        said = ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items() if count)
        console.print(f"FAILED: of {len(outcomes)} proofs {said}", style="bold red", highlight=False)
        return 2 if only_tools else 1
    told = sum(one.verdict is not Verdict.PROVEN for one in outcomes)
    changes = f", all {told} changes of the netlists are caught or proven to be none" if told else ""
    console.print(f"all {len(outcomes) - told} proofs are done{changes}", style="green", highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Run every input of the quantisers and of the netlists, and compare bit for bit.

Groups of checks:

- quantisers: the compiled kernels on all float32 values.
- netlists: the converters between every two formats, on all codes.
- modes: converters of up to 16 bits in every rounding mode, on all codes with some random numbers.
- tiny-steps: fused steps of tiny formats, on all operands.
- rounded-steps: fused steps in every rounding mode, of a tiny format on all operands, of cbfloat16 on 10^6 biased ones.
- steps: fused steps of the formats in use, on 10^8 biased operands each. They take minutes, and run only on request.

The findings of each check are kept in build/exhaustive when it ends. An interrupted run continues where it stopped,
unless the source has changed; --anew starts from the beginning.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from golden import kernels
from lab.evidence.publish import publish
from lab.exhaustive import converters, modes, quantisers, steps
from lab.exhaustive.check import Check, run
from lab.exhaustive.kept import Finding, Findings, oldest, source_now
from tools.evidence import Means, Part, Record, note
from tools.interrupts import ending_on_interrupt

__all__ = ["main"]


def _jobs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"got {text!r}, must be a number of threads from 1 to 1024")
    return int(text)


def _groups() -> dict[str, list[Check]]:
    return {
        "quantisers": quantisers.quantiser_checks(),
        "netlists": converters.converter_checks(),
        "modes": modes.mode_checks(),
        "tiny-steps": steps.tiny_step_checks(),
        "rounded-steps": [*steps.tiny_rounded_checks(), *steps.sampled_rounded_checks()],
        "steps": steps.sampled_step_checks(),
    }


#: Characters in a line, unless a terminal sets its width.
_FILE_WIDTH = 130

#: The module of each group, the part that it judges, the means, and the limits of the evidence.
_EVIDENCE = {
    "quantisers": (quantisers, Part.KERNELS, Means.EVERY_INPUT, ""),
    "netlists": (converters, Part.CONVERTERS, Means.EVERY_INPUT, ""),
    "modes": (modes, Part.CONVERTERS, Means.EVERY_INPUT, "but random numbers"),
    "tiny-steps": (steps, Part.STEP, Means.EVERY_INPUT, "of tiny formats"),
    "rounded-steps": (steps, Part.STEP, Means.SAMPLED, "in every rounding mode"),
    "steps": (steps, Part.STEP, Means.SAMPLED, ""),
}

#: Groups that run when none is named.
_DEFAULT = ("quantisers", "netlists", "modes", "tiny-steps", "rounded-steps")


def _parser(groups: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab.exhaustive", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "checks",
        nargs="*",
        metavar="CHECK",
        help=f"a group ({', '.join(groups)}; default: all but steps) or one of its checks, as the table names it",
    )
    parser.add_argument(
        "--path",
        default="auto",
        choices=["auto", *kernels.paths()],
        help="compiled path of the quantisers (default: the fastest of this machine)",
    )
    parser.add_argument(
        "--jobs", type=_jobs, default=os.cpu_count() or 1, help="threads (default: one per processor, %(default)s)"
    )
    parser.add_argument("--anew", action="store_true", help="run every check, whatever an earlier run has left")
    parser.add_argument(
        "--update-docs", action="store_true", help="keep the groups that are complete as evidence for the documentation"
    )
    return parser


def _chosen(
    given: Sequence[str], groups: Mapping[str, Sequence[Check]], parser: argparse.ArgumentParser
) -> list[Check]:
    """Return the named checks, each once; an unknown name ends the program."""
    known = {check.name: [check] for checks in groups.values() for check in checks} | dict(groups)
    unknown = [name for name in given if name not in known]
    if unknown:
        names = ", ".join(known)
        parser.error(f"CHECK: got {', '.join(unknown)}, must be of {names}")
    return list({check.name: check for name in given or _DEFAULT for check in known[name]}.values())


def _run_all(
    checks: Sequence[Check], jobs: int, console: Console, kept: Findings, tell: Callable[[Sequence[Finding]], object]
) -> list[Finding]:
    """Run the checks without a kept finding; `tell` takes all findings after each."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    known = {check.name: found for check in checks if (found := kept.of(check))}
    if known:
        console.print(f"{len(known)} of {len(checks)} checks are known from an earlier run (--anew runs them again)")
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        for check in checks:
            if check.name in known:
                continue
            task = progress.add_task(check.name, total=check.total)
            if not console.is_terminal:
                console.print(f"{check.name}: {check.total} inputs")
            started = time.perf_counter()
            outcome = run(check, jobs, partial(progress.advance, task))
            known[check.name] = kept.keep(outcome, time.perf_counter() - started)
            tell(list(known.values()))
    return [known[check.name] for check in checks]


def _report(findings: Sequence[Finding], console: Console) -> None:
    # A narrow terminal must not cut the counts.
    numbers = (Column(title, justify="right", no_wrap=True, min_width=10) for title in ("compared", "wrong", "seconds"))
    table = Table(Column("check", no_wrap=True), Column("judged by", overflow="fold"), *numbers, "result")
    for finding in findings:
        outcome = finding.outcome
        counts = f"{outcome.count}", f"{outcome.wrong}", f"{finding.seconds:.0f}"
        result = ("pass" if outcome.passed else "FAIL") + (f", {finding.date}" if finding.is_kept else "")
        table.add_row(outcome.check.name, outcome.check.against, *counts, result)
    console.print(table)
    for outcome in [finding.outcome for finding in findings]:
        for example in outcome.examples:
            console.print(f"{outcome.check.name}: {example}", highlight=False)
        if not outcome.complete:
            console.print(f"{outcome.check.name}: compared {outcome.count} of {outcome.check.total} inputs")


def _note(findings: Sequence[Finding], groups: Mapping[str, Sequence[Check]]) -> list[str]:
    """Write the counts of the groups whose checks are all known, and return their names as tools."""
    found = {finding.outcome.check.name: finding for finding in findings}
    tools = []
    for group, checks in groups.items():
        if checks and all(check.name in found for check in checks):
            its = [found[check.name] for check in checks]
            module, unit, kind, limit = _EVIDENCE[group]
            count, wrong = (sum(getattr(one.outcome, name) for one in its) for name in ("count", "wrong"))
            first = oldest(its)
            record = Record(unit, kind, count, "inputs", wrong, limit)
            tools.append(f"exhaustive-{group}")
            seconds = round(sum(one.seconds for one in its))
            note(tools[-1], [record], [module.__name__], date=first.date, commit=first.commit, seconds=seconds)
    return tools


@ending_on_interrupt("lab.exhaustive", "the checks that have ended are kept, the next run goes on")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 if every check has passed, 1 if one fails, 130 on Ctrl-C."""
    parser = _parser(list(_groups()))
    given = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else _FILE_WIDTH)
    # The pieces run side by side, so one thread for each call is enough.
    with kernels.use(given.path, threads=1):
        groups = _groups()
        chosen = _chosen(given.checks, groups, parser)
        console.print(f"path {kernels.kernel_info()['path']}, {given.jobs} threads")
        kept = Findings(source_now())
        if given.anew:
            kept.forget(chosen)
        findings = _run_all(chosen, given.jobs, console, kept, partial(_note, groups=groups))
    _report(findings, console)
    tools = _note(findings, groups)
    if not all(finding.outcome.passed for finding in findings):
        return 1
    if given.update_docs:
        console.print(f"published: {', '.join(tools) or 'nothing, as no group is complete'}", highlight=False)
        publish(tools)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Members of the family, judged blind by number; an interrupted record continues where it stopped."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from rich.progress import track

import golden
from lab.devices.family import member
from lab.devices.judge import judged
from tools import results
from tools.interrupts import end_with_parent, ended_by_interrupts, unheard_interrupts
from tools.pages import publish
from tools.results import Table, measured

__all__ = ["KINDS", "TOOL", "earlier", "judge", "record", "table"]

TOOL = "family"
SOURCES = ("lab.devices.members",)
#: Verdicts, by the letter in the record of a member: a capital if the member was judged again.
KINDS = {"f": "found", "n": "not found", "r": "refused", "w": "wrong model"}
# Sums of verification after fewer sums gave a wrong model: the default of `golden.identify`.
_AGAIN = 1_000_000
_AT_ONCE = 20  # members between two records
_LISTED = 40  # members that a row of the table names

Verdicts = dict[str, str]


def _judged(number: int, total: str, verify: int) -> tuple[str, str]:
    """Return the letter of a member's verdict, and a line about it."""
    device, is_again = member(number, golden.format_named(total)), False
    try:
        verdict = judged(device, verify=verify)
        if verdict.is_wrong and verify < _AGAIN:
            verdict, is_again = judged(device, verify=_AGAIN), True
    except ValueError as error:  # a machine that loses single products gives codes that no format of results has
        return "r", str(error)
    letter = "w" if verdict.is_wrong else "n" if verdict.is_missed else "f"
    again = f", after a wrong model with {verify:,} sums of verification" if is_again else ""
    return letter.upper() if is_again else letter, f"{verdict.sums:,} sums, {verdict.seconds:.1f} s{again}"


def judge(first: int, count: int, total: str, verify: int, jobs: int) -> Iterator[str]:
    """Judge members in processes, print a line for each, and yield the letters of their verdicts in order.

    Parameters
    ----------
    first, count : int
        The number of the first member, and the number after the last one.
    total : str
        Format of the totals.
    verify : int
        Sums of verification.
    jobs : int
        Processes.
    """
    numbers = range(first, count)
    with ProcessPoolExecutor(jobs, initializer=end_with_parent) as pool, ended_by_interrupts(pool):
        with unheard_interrupts():
            done = pool.map(partial(_judged, total=total, verify=verify), numbers)
        shown = track(done, "identifying", total=len(numbers), disable=not sys.stderr.isatty())
        for number, (letter, about) in zip(numbers, shown, strict=True):
            print(f"member {number}: {KINDS[letter.lower()]}, {about}", flush=True)
            yield letter


def earlier(verify: int) -> Verdicts:
    """Return the verdicts of a kept record with the same source and verification, by format of the totals."""
    data = results.earlier(TOOL)
    return dict(data["verdicts"]) if data.get("verify") == verify else {}


def table(verdicts: Verdicts) -> Table:
    """Return the record, a row for each format of the totals."""
    rows = []
    for total, letters in verdicts.items():
        missed = [str(number) for number, letter in enumerate(letters) if letter in "nwNW"]
        more = f" and {len(missed) - _LISTED} more" if len(missed) > _LISTED else ""
        counts = (f"{letters.lower().count(letter):,}" for letter in KINDS)
        again = f"{sum(map(str.isupper, letters)):,}"
        rows.append((total, f"{len(letters):,}", *counts, again, ", ".join(missed[:_LISTED]) + more))
    return Table(("totals", "members", *KINDS.values(), "judged again", "numbers of those not found"), rows)


def record(count: int, total: str, verify: int, jobs: int) -> str:
    """Judge the members that a kept record lacks; keep and publish it every few members. Return all letters."""
    verdicts = earlier(verify)
    note = results.read(TOOL).note if verdicts else ""  # on the machines of earlier verdicts
    letters = verdicts.get(total, "")
    for letter in judge(len(letters), count, total, verify, jobs):
        letters += letter
        verdicts[total] = letters
        if len(letters) % _AT_ONCE == 0 or len(letters) == count:
            data = {"verify": verify, "verdicts": verdicts}
            publish(measured(TOOL, SOURCES, note=note, tables=(table(verdicts),), data=data))
    return letters

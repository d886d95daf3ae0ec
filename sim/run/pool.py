"""Testing several units at a time."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import forkserver

from sim.run.outcome import Outcome
from sim.run.simulate import Job, run_unit
from sim.units import slowest_first
from tools.interrupts import end_with_parent, ended_by_interrupts, unheard_interrupts

__all__ = ["fresh_processes", "run_all"]


def fresh_processes(*modules: str) -> multiprocessing.context.BaseContext:
    """Return a context that starts processes with these modules loaded; importing them takes longer than many units.

    The processes are forks of a server that has imported the modules and run nothing else. They ignore Ctrl-C; the
    process that started them ends them.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(modules))
    with unheard_interrupts():
        forkserver.ensure_running()
    return context


def run_all(jobs: list[Job], processes: int, report: Callable[[Outcome], None]) -> list[Outcome]:
    """Run every job and report each one as it ends; return the outcomes in the order of the jobs.

    Each job has a fresh process, so that units cannot affect each other.
    """
    outcomes: dict[Job, Outcome] = {}
    context = fresh_processes("sim.__main__", "sim.run.loaded")
    opened = ProcessPoolExecutor(processes, context, end_with_parent, max_tasks_per_child=1)
    with opened as pool, ended_by_interrupts(pool):
        # Slow ones first, so that none of them runs alone at the end.
        order = slowest_first(job.unit for job in jobs)
        futures = {pool.submit(run_unit, job): job for job in sorted(jobs, key=lambda job: order.index(job.unit))}
        for future in as_completed(futures):
            job = futures[future]
            try:
                outcome = future.result()
            except Exception as error:  # the process itself died
                outcome = Outcome(job.unit, failures=[f"the process of this unit ended: {error!r}"], is_broken=True)
            outcomes[job] = outcome
            report(outcome)
    return [outcomes[job] for job in jobs]

# amaranth: UnusedElaboratable=no
# A part is elaborated by hand, so that its state is at hand.
"""The command that runs: it was accepted, and keeps its value until all of its work is over."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Signal
from amaranth.lib.wiring import In

from hdl.matrix_engine.parameters import EngineParameters
from hdl.matrix_engine.ports import checked_layout, command_layout
from hdl.matrix_engine.run import Run
from lab.proofs.along_engine.matrices import Bounds

__all__ = ["Command"]


class Command(Bounds):
    """The part that runs commands; of the other parts, the model knows only whether they work.

    Ports
    -----
    ends : in
        The work ends, if there is any.
    submission, checked, checked_valid, submitted, is_quiet, read_fails, write_fails, abort, reset_all, pop : in
        As of `hdl.matrix_engine.run.Run`.
    """

    def __init__(self, parameters: EngineParameters) -> None:
        self.run = Run(parameters)
        self.flags = ("submitted", "is_quiet", "read_fails", "write_fails", "abort", "reset_all", "pop")
        super().__init__(
            {
                "submission": In(command_layout()),
                "checked": In(checked_layout(parameters)),
                **{name: In(1) for name in ("checked_valid", "ends", *self.flags)},
            }
        )

    def observe(self, m: Module, platform: object) -> tuple[Any, Any, Any]:
        run, works = self.run, Signal()
        m.submodules.run = run.elaborate(platform)
        m.d.comb += [getattr(run, name).eq(getattr(self, name)) for name in self.flags]
        m.d.comb += [
            run.submission.eq(self.submission),
            run.checked.payload.eq(self.checked),
            run.checked.valid.eq(self.checked_valid),
            run.is_done.eq(~works),
        ]
        m.d.sync += works.eq((works & ~self.ends) | run.start)
        with m.If(run.clear):
            m.d.sync += works.eq(0)
        before, worked = Signal(run.command.shape()), Signal()
        m.d.sync += [before.eq(run.command), worked.eq(works | run.start)]
        now = {name: run.fsm.ongoing(name) for name in ("START", "RUN", "STOP", "CLEAR")}
        conditions = [
            ("works while it runs", ~works | now["RUN"] | now["STOP"] | now["CLEAR"]),
            ("as it was taken", ~now["START"] | (run.error == run.command.error)),
            ("same command", ~worked | (run.command.as_value() == before.as_value())),
        ]
        claims = [
            ("starts when nothing works", ~run.start | ~works),
            ("starts what was accepted", ~run.start | ((run.command.error == 0) & ~run.command.is_void)),
        ]
        return [], conditions, claims

"""The self-test: rounds of products through the multiply-accumulate unit, each ending in a verdict."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.mac.multiply_accumulate import MultiplyAccumulate
from lab.boards.plan import Plan
from lab.boards.products import Products
from lab.boards.signature import Signature

__all__ = ["PATIENCE", "SelfTest"]

#: Cycles without a result after which the unit counts as stuck: several times what the longest window can take.
PATIENCE = 8 * Plan.LONGEST * Plan.REGISTERS // 2


class SelfTest(wiring.Component):
    """Run rounds of the self-test. Nothing depends on how long the unit takes or in what order its results come.

    Parameters
    ----------
    expected : int
        The signature that a round must have, 32 bits.
    plan : Plan, optional
        What a round consists of.
    unit : component, optional
        What is tested: a `MultiplyAccumulate` with the operands, levels and registers of `Plan`, or something with its
        ports.
    patience : int
        Cycles without a result after which a round is given up.

    Attributes
    ----------
    proceed : in
        The next round may start.
    running : out
        A round is under way.
    done : out
        High for one cycle at the end of a round.
    found : unsigned(32), out
        Signature of the round that ended last, from ``done`` to the start of the next round.
    passed : out
        Whether that is the expected one. A round that was given up never passes.

    Raises
    ------
    ValueError
        If `expected` has more than 32 bits.
    """

    def __init__(self, expected: int, *, plan: Plan | None = None, unit: Any = None, patience: int = PATIENCE) -> None:
        if not 0 <= expected < 1 << 32:
            raise ValueError(f"expected: got {expected:#x}, must have at most 32 bits")
        self.expected, self.plan, self.patience = expected, plan or Plan(), patience
        if unit is None:
            unit = MultiplyAccumulate(operands=(Plan.OPERAND,), levels=Plan.LEVELS, registers=Plan.REGISTERS)
        self.unit = unit
        super().__init__({"proceed": In(1), "running": Out(1), "done": Out(1), "found": Out(32), "passed": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        plan = self.plan
        m.submodules.unit = unit = self.unit
        m.submodules.products = products = Products(plan, unit.i.payload.shape())
        m.submodules.fold = fold = Signature(unit.o.payload.shape())
        wiring.connect(m, products.o, unit.i)
        wiring.connect(m, unit.o, fold.i)

        window = Signal(plan.WINDOW_BITS)
        results, waited = Signal(range(plan.lanes + 1)), Signal(range(self.patience + 1))
        m.d.comb += [
            unit.chunk.eq(plan.chunk),
            products.window.eq(window),
            fold.window.eq(window),
            self.found.eq(fold.value),
        ]
        m.d.sync += waited.eq(waited + 1)
        with m.If(fold.taken):
            m.d.sync += [results.eq(results + 1), waited.eq(0)]

        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.proceed):
                    m.d.comb += fold.clear.eq(1)
                    m.d.sync += [window.eq(0), self.passed.eq(0)]
                    m.next = "BEGIN"
            with m.State("BEGIN"):
                m.d.comb += [self.running.eq(1), products.begin.eq(1)]
                m.d.sync += [results.eq(0), waited.eq(0)]
                m.next = "AWAIT"
            with m.State("AWAIT"):
                m.d.comb += self.running.eq(1)
                with m.If((results == plan.lanes) & fold.settled):
                    with m.If(window == plan.windows - 1):
                        m.d.sync += self.passed.eq(fold.value == self.expected)
                        m.next = "DONE"
                    with m.Else():
                        m.d.sync += window.eq(window + 1)
                        m.next = "BEGIN"
                with m.Elif(waited == self.patience):
                    m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += self.done.eq(1)
                m.next = "IDLE"
        return m

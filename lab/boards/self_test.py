"""The self-test: rounds of products through the multiply-accumulate unit, each ending in a verdict.

`Products` makes the products of a round, `Signature` makes one number of all results, and `SelfTest` runs the rounds.
"""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.crc import Algorithm, catalog
from amaranth.lib.wiring import In, Out

from hdl.mac.multiply_accumulate import MultiplyAccumulate
from lab.boards.plan import Plan

__all__ = ["PATIENCE", "Products", "SelfTest", "Signature"]

_FORMAT = Plan.OPERAND


class Products(wiring.Component):
    """Send the products of one window after the other, as `Plan` describes them.

    Parameters
    ----------
    plan : Plan
    beat : layout
        Of the unit's product beats.

    Attributes
    ----------
    begin : in
        High for one cycle: send window number ``window``, which is 0 or follows the one before.
    window : unsigned, in
        Keep it until the window has been sent.
    o : stream of product beats, out
    """

    def __init__(self, plan: Plan, beat: Any) -> None:
        self.plan = plan
        super().__init__({"begin": In(1), "window": In(plan.WINDOW_BITS), "o": Out(stream.Signature(beat))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        plan, levels = self.plan, len(self.plan.LEVELS)
        # A CRC over zeros is simply its shift register.
        m.submodules.noise = noise = Algorithm(
            crc_width=32,
            polynomial=plan.POLYNOMIAL,
            initial_crc=plan.SEED,
            reflect_input=False,
            reflect_output=False,
            xor_output=0,
        )(data_width=32).create()

        is_sending = Signal()
        lane, k = Signal(range(plan.lanes)), Signal(range(plan.length))
        level, first_level, next_first_level = (Signal(2) for _ in range(3))
        is_last_lane, is_last_product = lane == plan.lanes - 1, k == plan.length - 1
        m.d.comb += next_first_level.eq(Mux(self.window == 0, 0, _following(first_level, levels)))

        # Registered, so that the unit's paths start at a register here.
        load = is_sending & (~self.o.valid | self.o.ready)
        m.d.comb += [noise.valid.eq(load), noise.start.eq(self.begin & (self.window == 0))]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(load):
            m.d.sync += [
                self.o.valid.eq(1),
                self.o.payload.a.eq(self._operand(noise.crc[:16], is_a=True)),
                self.o.payload.b.eq(self._operand(noise.crc[16:], is_a=False)),
                self.o.payload.level.eq(level),
                self.o.payload.register.eq(Cat((level == 2) & self.window[2], lane)),
                self.o.payload.first.eq(k == 0),
                self.o.payload.last.eq(is_last_product),
                lane.eq(Mux(is_last_lane, 0, lane + 1)),
                level.eq(Mux(is_last_lane, first_level, _following(level, levels))),
            ]
            with m.If(is_last_lane):
                m.d.sync += [k.eq(Mux(is_last_product, 0, k + 1)), is_sending.eq(~is_last_product)]
        with m.If(self.begin):
            m.d.sync += [is_sending.eq(1), first_level.eq(next_first_level), level.eq(next_first_level)]
        return m

    def _operand(self, noise: Value, *, is_a: bool) -> Value:
        bits, bias = _FORMAT.fraction_bits, _FORMAT.bias
        fraction, field, sign = noise[:bits], noise[bits : _FORMAT.width - 1], noise[_FORMAT.width - 1]
        kind = self.window[:2]
        top_bits = Const(3 << (bits - 2), bits)
        small = field[:2] if is_a else bias - 8 + field[:3]
        fields = [bias - 8 + field[:4], bias - 1 + field[:1], small, field]
        shaped = Signal(_FORMAT.exponent_bits, name="field_of_a" if is_a else "field_of_b")
        chosen = Mux(kind[1], Mux(kind[0], fields[3], fields[2]), Mux(kind[0], fields[1], fields[0]))
        return Cat(Mux(kind[0], fraction & top_bits, fraction), chosen[: len(shaped)], sign)


def _following(level: Value, levels: int) -> Value:
    return Mux(level == levels - 1, 0, level + 1)


class Signature(wiring.Component):
    """Add up the CRCs of results, as `Plan` describes it.

    Parameters
    ----------
    beat : layout
        Of the unit's result beats.

    Attributes
    ----------
    clear : in
        Start again from 0.
    window : unsigned, in
        Number of the window that the results belong to.
    i : stream of result beats, in
        Not ready in one cycle of four, so that the unit must sometimes wait.
    taken : out
        A result is being taken.
    value : unsigned(32), out
        The signature of all results taken so far.
    settled : out
        No result is still on its way into ``value``.
    """

    def __init__(self, beat: Any) -> None:
        super().__init__(
            {
                "clear": In(1),
                "window": In(Plan.WINDOW_BITS),
                "i": In(stream.Signature(beat)),
                "taken": Out(1),
                "value": Out(32),
                "settled": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.crc = crc = catalog.CRC32_ISO_HDLC(data_width=64).create()
        result = self.i.payload
        cycle, is_folding = Signal(2), Signal()
        register, error = Signal(6), Signal(2)
        m.d.comb += [
            self.i.ready.eq(cycle != 0),
            self.taken.eq(self.i.valid & self.i.ready),
            register.eq(result.register),
            error.eq(result.error),
            crc.data.eq(Cat(result.result, result.flags.as_value(), Const(0, 3), register, error, self.window)),
            crc.valid.eq(self.taken),
            crc.start.eq(1),
            self.settled.eq(~is_folding),
        ]
        m.d.sync += [cycle.eq(cycle + 1), is_folding.eq(self.taken)]
        with m.If(self.clear):
            m.d.sync += self.value.eq(0)
        with m.Elif(is_folding):
            m.d.sync += self.value.eq(self.value + crc.crc)
        return m


#: Cycles without a result after which the unit counts as stuck: several times the length of the longest window.
PATIENCE = 8 * Plan.LONGEST * Plan.REGISTERS // 2


class SelfTest(wiring.Component):
    """Run rounds of the self-test. Nothing depends on how long the unit takes or in what order its results come.

    Parameters
    ----------
    expected : int
        The signature that a round must have, 32 bits.
    plan : Plan, optional
        The products of a round.
    unit : component, optional
        The unit under test: a `MultiplyAccumulate` with the operands, levels and registers of `Plan`, or a component
        with the same ports.
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
        Whether that signature is the expected one. A round that was given up never passes.

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

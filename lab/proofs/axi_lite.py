"""Proofs about the counters' registers on an AXI4-Lite bus.

*The registers alone*, in every cycle from every state: an address, data or strobes are taken when both sides are ready;
a write is carried out once both are there and the last answer has left, and clears the counters exactly if it strobes a
byte of the register 0x3c; other registers are answered with an error. A read gives what its counter shows in that
cycle, and 0 where there is none. An offered word stays, unchanged, until it is taken. A reset leaves nothing on its
way.

*In the AXI4-Stream unit*, without the unit inside: for any traffic in the cycles after a reset, the bus answers as the
registers alone do. The unit clears its counters when the registers are told to, and the registers show its counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.formats import CBFLOAT16
from hdl.axi_lite import CounterRegisters, axi_lite_ports
from hdl.axi_stream import AxiStreamMac
from hdl.mac.counters import COUNTER_BITS, counts_layout
from lab.netlists.netlist import Instance
from lab.netlists.yosys import EVERTED_UNIT, SEQUENTIAL, netlist_of
from lab.proofs.pipelines import following
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof
from lab.proofs.terms import bits, both, either, equal, inverse, refute, slice_of

__all__ = ["RegistersAlone", "axi_lite_proofs"]

_QUIET = {"rst": "#b0", "clk": "#b0"}
_STATE = {"address": 4, "has_address": 1, "strobes": 4, "has_data": 1, "read_address": 4, "reads": 1}
_CLEAR, _OKAY, _ERROR = bits(15, 4), bits(0, 2), bits(2, 2)
#: Registers, by their number: products from 0, promotions from 8; as documented, and not as the unit computes them.
_COUNTERS = (*range(0, 6), *range(8, 14))
#: Cycles of traffic after a reset: enough for a write and a read to pass and for the next ones to begin.
_CYCLES = 5


class RegistersAlone(wiring.Component):
    """The registers, and ports that show the rest of their state."""

    def __init__(self) -> None:
        self.registers = CounterRegisters()
        ports = dict(self.registers.signature.members)
        super().__init__(ports | {f"its_{name}": Out(width) for name, width in _STATE.items()})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.registers = registers = self.registers
        for name, port in registers.signature.members.items():
            inside, outside = getattr(registers, name), getattr(self, name)
            m.d.comb += inside.eq(outside) if port.flow is In else outside.eq(inside)
        m.d.comb += [getattr(self, f"its_{name}").eq(getattr(registers, name)) for name in _STATE]
        return m


def axi_lite_proofs() -> Iterator[Proof]:
    """Yield the proofs of the registers alone and in their place."""
    for engine in (BITWUZLA, Z3_CADICAL):
        title = ("counters: AXI4-Lite", "every cycle", "rules of the bus", engine, _rules)
        yield Proof("counters/bus/rules", *title, timeout=120, fast=engine == BITWUZLA)
    build = partial(_in_place, _CYCLES)
    named = ("counters: AXI4-Lite", f"in the unit, {_CYCLES} cycles", "registers alone", BITWUZLA, build)
    yield Proof("counters/bus/unit", *named, timeout=300, fast=True)


def _holds(instance: Instance, port: str) -> str:
    return equal(instance.port(port), "#b1")


def _rules(folder: Path) -> str:
    """Return a formula with a solution if the registers break a rule."""
    netlist = netlist_of(RegistersAlone(), folder, SEQUENTIAL)
    now = netlist.instance("top", given=_QUIET)
    (after,) = following(netlist, 1, "after", now, [{}])
    reset = netlist.instance("reset", given={"rst": "#b1", "clk": "#b0"})
    (begun,) = following(netlist, 1, "begun", reset, [{}])
    has_address, has_data = _holds(now, "its_has_address"), _holds(now, "its_has_data")
    b_leaves, r_leaves = (either(inverse(_holds(now, f"{name}valid")), _holds(now, f"{name}ready")) for name in "br")
    writes, gives = both(has_address, has_data, b_leaves), both(_holds(now, "its_reads"), r_leaves)
    is_clear = equal(now.port("its_address"), _CLEAR)
    some_byte = inverse(equal(now.port("its_strobes"), bits(0, 4)))

    def kept(*names: str) -> str:
        return both(*(equal(after.port(name), now.port(name)) for name in names))

    def taken(channel: str, there: str, done: str, **fields: str) -> list[str]:
        """Return the rules of an input channel."""
        accepted = both(_holds(now, f"{channel}valid"), _holds(now, f"{channel}ready"))
        same = both(*(equal(after.port(f"its_{name}"), word) for name, word in fields.items()))
        is_there = either(accepted, both(_holds(now, f"its_{there}"), inverse(done)))
        return [
            equal(_holds(now, f"{channel}ready"), inverse(_holds(now, f"its_{there}"))),
            equal(_holds(after, f"its_{there}"), is_there),
            either(inverse(accepted), same),
            either(inverse(_holds(now, f"its_{there}")), kept(*(f"its_{name}" for name in fields))),
        ]

    claims = [
        *taken("aw", "has_address", writes, address=slice_of(now.port("awaddr"), 5, 2)),
        *taken("w", "has_data", writes, strobes=now.port("wstrb")),
        *taken("ar", "reads", gives, read_address=slice_of(now.port("araddr"), 5, 2)),
        equal(_holds(now, "clear"), both(writes, is_clear, some_byte)),
        equal(_holds(after, "bvalid"), either(writes, both(_holds(now, "bvalid"), inverse(_holds(now, "bready"))))),
        equal(_holds(after, "rvalid"), either(gives, both(_holds(now, "rvalid"), inverse(_holds(now, "rready"))))),
        f"(ite {writes} {equal(after.port('bresp'), f'(ite {is_clear} {_OKAY} {_ERROR})')} {kept('bresp')})",
        f"(ite {gives} {equal(after.port('rdata'), _register(now))} {kept('rdata')})",
        equal(now.port("rresp"), _OKAY),
        *(inverse(_holds(begun, name)) for name in ("bvalid", "rvalid", "clear")),
        *(_holds(begun, name) for name in ("awready", "wready", "arready")),
    ]
    text = now.text + now.shown + after.text + reset.text + begun.text
    return text + refute(both(*claims))


def _register(now: Instance) -> str:
    """Return the contents of the register that is read."""
    shown, counts = bits(0, COUNTER_BITS), now.port("counts")
    for place, number in enumerate(_COUNTERS):
        low = place * COUNTER_BITS
        count = slice_of(counts, low + COUNTER_BITS - 1, low)
        shown = f"(ite {equal(now.port('its_read_address'), bits(number, 4))} {count} {shown})"
    return shown


def _in_place(cycles: int, folder: Path) -> str:
    """Return a formula with a solution if the bus of the unit does anything else than the registers alone."""
    component = AxiStreamMac(operands=(CBFLOAT16,), counters=True)
    unit = netlist_of(component, folder, f"{EVERTED_UNIT}; dffunmap; opt_clean")
    alone = netlist_of(RegistersAlone(), folder, SEQUENTIAL)
    ports = axi_lite_ports()
    inputs = [name for name, port in ports.items() if port.flow is In and name in alone.inputs]
    # Yosys keeps only one of the names that a wire has on its two sides.
    (counts,) = (name for name, width in unit.inputs.items() if width == counts_layout().size)
    clear = [name for name in unit.outputs if name.startswith("unit.clear")]
    text, claims = "", []
    top = unit.instance("before", given={"aresetn": "#b0"})
    twin = alone.instance("reset", given={"rst": "#b1", "clk": "#b0"})
    text += top.text + twin.text
    for cycle in range(cycles):
        top = unit.instance(f"unit_{cycle}", given={"aresetn": "#b1"}, held=top.registers)
        given = {name: top.port(f"s_axil_{name}") for name in inputs} | {"counts": top.port(counts)}
        twin = alone.instance(f"alone_{cycle}", given=_QUIET | given, held=twin.registers)
        text += top.text + twin.text
        valid = {"bresp": "bvalid", "rdata": "rvalid", "rresp": "rvalid"}
        for name, port in ports.items():
            if port.flow is Out:
                same = equal(top.port(f"s_axil_{name}"), twin.port(name))
                claims.append(either(inverse(_holds(twin, valid[name])), same) if name in valid else same)
        # Yosys leaves out what never changes.
        claims.append(equal(top.port(clear[0]) if clear else "#b0", twin.port("clear")))
    return text + refute(both(*claims))

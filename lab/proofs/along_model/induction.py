"""Proofs about the multiply-accumulate unit around its lane, for any number of beats, at every depth.

The lane is left out. The sequential model (`Ghost`) runs in the cycle of a product's issue, and takes any value for the
lane's result. It writes a *record*: this result, and the operands and the accumulator that the operation must get. As
long as every operation gets the operands of its record, we may assume that the lane gives the results of the records.
So this holds for every arithmetic, and for the lane's.

By induction over cycles: the conditions of `Invariant` and `Delivery` hold at reset; if they hold in a cycle, the
claims hold in that cycle, and the conditions in the next one. The claims: no beat is lost or invented; operands and
accumulators equal the records; results leave with the right value in the order of their register, refusals apart; no
beat waits without a reason, so that a unit that is left alone gives all its results. An accumulator that is read after
the issue is among the conditions.

A reset may come in any cycle: the conditions hold after it, and the unit then offers no result. The model starts from
its reset state, so nothing that was in the unit before may leave it later.

The premise is the unit's rule for its user: a beat continues only values of its level, in its register. The port
``chunk`` may change in every cycle: a chunk is as long as the port says when its first product is issued. Later it only
matters whether it says 0, in which case no chunk ends.

If there is a solution, a claim fails, or the conditions are too weak: the unit may never reach the state of a solution.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from amaranth import C, Cat, Const, Module, Mux, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import CBFLOAT16, HALF_FORMATS, FloatFormat
from hdl.cores.words import choose
from hdl.mac.inner import OPERAND
from hdl.mac.parameters import DEPTHS, MacParameters
from hdl.mac.ports import product_beat_layout, result_beat_layout
from lab.netlists.yosys import netlist_of_verilog
from lab.proofs.along_model.agreement import agrees, plain
from lab.proofs.along_model.delivery import Delivery
from lab.proofs.along_model.ghost import Ghost
from lab.proofs.along_model.invariant import Invariant
from lab.proofs.along_model.opened import OpenedUnit
from lab.proofs.along_model.record import Condition, given_layout
from lab.proofs.conditions import named_conditions
from lab.proofs.control import MODES
from lab.proofs.left_out import OpenMac, pass_on
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof
from lab.proofs.terms import bits, both, either, equal, inverse

__all__ = [
    "MOST",
    "ControlWithModel",
    "component",
    "induction",
    "induction_proofs",
]

#: As small as can be: nothing is computed in it here.
_TINY = (FloatFormat("1-2-1", 2, 1),)
#: One of them has more bits of each kind than the first one.
_SEVERAL = (*_TINY, FloatFormat("1-3-1", 3, 1), FloatFormat("1-2-2", 2, 2))
#: The depths of a unit of one operand format and of one of several, unless others are given: these units are proven
#: with all their registers, and the deeper one with several formats.
_RECOMMENDED = sorted({MacParameters(operands=operands).stages for operands in ((CBFLOAT16,), HALF_FORMATS)})
_FAST = 3
_MEANS = "induction along a sequential model"
#: More than there are conditions.
MOST = 1000


class ControlWithModel(wiring.Component):
    """A unit without its lane beside the sequential model.

    Ports
    -----
    i, o, chunk
        As of `MultiplyAccumulate`.
    pair : in
        The pair of registers that the model follows, if there are several; it must keep its value.
    given, total_given, watch : in
        Any values: see `Ghost` and `Delivery`.
    legal : out
        The issued operation continues only values of its level, in its register.
    conditions, claims : out
        One bit for each, in the order of `names`; bits without a name are set.
    """

    def __init__(self, unit_type: type[OpenMac] = OpenMac, **given: Any) -> None:
        self.unit = unit = unit_type(**given)
        parameters = unit.parameters
        #: Names of the conditions and the claims, known when it has been elaborated.
        self.names: dict[str, list[str]] = {}
        self.ghost: Ghost
        pairs = {"pair": In(parameters.register_width - 1)} if parameters.registers > 2 else {}
        super().__init__(
            {
                **pairs,
                "i": In(stream.Signature(product_beat_layout(parameters))),
                "o": Out(stream.Signature(result_beat_layout(parameters))),
                "chunk": In(parameters.chunk_bits),
                "given": In(given_layout(parameters)),
                "total_given": In(given_layout(parameters)),
                "watch": In(1),
                "legal": Out(1),
                "conditions": Out(MOST),
                "claims": Out(MOST),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        unit = self.unit
        opened = OpenedUnit(unit)
        m.submodules.unit = unit
        m.d.comb += pass_on(self, unit)
        operations = opened.operations
        pair = self.pair if unit.registers > 2 else C(0, 1)
        counted = opened.states.reading.data
        ghost = self.ghost = Ghost(m, unit.parameters, self.given, self.total_given, self.chunk, pair, counted)
        issued = operations[0]
        m.d.comb += ghost.is_issued.eq((issued.is_product & issued.writes) | Cat(issued.error).any())
        ghost.take(m, self.i.payload, self.i.valid, self.i.ready)
        _lane(m, opened, ghost)
        invariant = Invariant(m, opened, operations, ghost)
        leaves = self.o.valid & self.o.ready
        delivery = Delivery(m, opened, ghost, self.watch, self.o.payload, leaves)
        claims = [*_issue(self, opened, ghost), *invariant.claims, *delivery.claims, *_progress(ghost, delivery)]
        conditions = [*invariant.conditions, *delivery.conditions, *_blocked(opened, ghost, delivery)]
        for name, found in (("conditions", conditions), ("claims", claims)):
            self.names[name] = [each for each, _ in found]
            values = Cat(value for _, value in found)
            if len(values) != len(found):
                raise ValueError(f"{name}: got {len(values)} bits for {len(found)}, must be one for each")
            m.d.comb += getattr(self, name).eq(Cat(values, Const(-1, MOST - len(values))))
        m.d.comb += self.legal.eq(ghost.is_legal)
        return m


def _lane(m: Module, opened: OpenedUnit, ghost: Ghost) -> None:
    """Let the lane give the results of the records."""
    lane, given = opened.lane, ghost.records[-1].fields.given
    m.d.comb += [
        lane.number.eq(ghost.records[-2].fields.given.number),
        lane.result.eq(given.number),
        lane.result_class.eq(Cat(given.its_class, given.flags)),
        lane.promoted.eq(given.promoted),
        lane.given("code").eq(ghost.delivered.fields.given.code),
    ]


def _issue(top: ControlWithModel, opened: OpenedUnit, ghost: Ghost) -> list[tuple[str, Value]]:
    """Return the claims that no beat is lost or invented, and that an operation starts as its record says."""
    parameters, new, lane = ghost.parameters, ghost.records[0], opened.lane
    promoted = ghost.records[-1].fields.given.promoted
    a = Mux(ghost.is_promoting, promoted, plain(parameters, ghost.beat.format, ghost.beat.a))
    ones = [C(fmt.one, parameters.formats.operand_width) for fmt in parameters.operands]
    one = plain(parameters, new.fields.format, choose(new.fields.format, ones))
    b = Mux(ghost.is_promoting, one, plain(parameters, ghost.beat.format, ghost.beat.b))
    is_given = (Cat(lane.a) == a) & (Cat(lane.b) == b)
    return [
        ("issue", ~ghost.is_issued | (ghost.beat_valid & ~ghost.is_promoting)),
        ("no beat lost", ~(top.i.ready & ghost.beat_valid) | ghost.is_issued),
        ("no beat twice", ~ghost.is_issued | top.i.ready),
        (
            "operation",
            agrees(
                opened.operations[0],
                opened.flags[0],
                new,
                is_settled=parameters.chunk_delay == 0,
                has_flags=parameters.position("align") == 0,
                wide_format=len(parameters.operands),
            ),
        ),
        ("operands", ~new.fields.writes | is_given),
        ("chunk ends as told", ghost.ends_as_told),
    ]


def _blocked(opened: OpenedUnit, ghost: Ghost, delivery: Delivery) -> Iterator[Condition]:
    """Yield the claims about blocked beats; whether a beat is blocked is known before the cycle."""
    if not ghost.parameters.has_input_rank:
        return
    issue = opened.issue
    is_free = ghost.beat_valid & ~issue.is_blocked
    is_there = Cat(record.counts | record.is_promotion for record in ghost.records[1:]).any()
    yield "promotion announced", ~(ghost.beat_valid & ghost.is_promoting) | issue.is_blocked
    yield "others gone", ~(is_free & issue.held.is_chain & is_there)
    yield "a place is left", ~(is_free & issue.held.gives_result) | (delivery.used < ghost.parameters.results)
    yield "blocked for a reason", ~issue.is_blocked | (ghost.beat_valid & _is_obstructed(ghost, delivery))


def _is_obstructed(ghost: Ghost, delivery: Delivery) -> Value:
    """Tell whether a beat has a reason to wait other than its register."""
    # Where beats wait in a rank, the unit decides one cycle earlier, so a beat sees the reasons of the last cycle.
    stages, before = ghost.parameters.stages, int(ghost.parameters.has_input_rank)
    others = (ghost.beat.level == 0) & (ghost.since_others <= stages + before)
    is_full = (ghost.beat.last | ~ghost.is_sound) & (delivery.used > stages + 1 - 2 * before)
    return ghost.is_promoting | others | is_full


def _progress(ghost: Ghost, delivery: Delivery) -> list[tuple[str, Value]]:
    """Return the claims that a beat waits only for a reason: then a unit that is left alone gives all its results.

    `hdl.mac.issue.Issue` has the reasons: a promotion, a product of the same register, operations of other levels ahead
    of one of level 0, and a result that would find no place. Each ends after a fixed number of cycles, except the last:
    it ends as soon as results are taken, and the queue offers a result whenever it has one.
    """
    parameters, beat = ghost.parameters, ghost.beat
    recent = ghost.records[1 : parameters.accumulate_latency]
    same = Cat(each.is_sound_product & (each.fields.register == beat.register) for each in recent).any()
    return [
        ("waits for a reason", ~ghost.beat_valid | ghost.is_issued | same | _is_obstructed(ghost, delivery)),
        ("offers what it has", delivery.offers),
    ]


def induction_proofs() -> Iterator[Proof]:
    """Yield the proofs of units of every depth."""
    for stages in DEPTHS:
        for engine in (BITWUZLA, Z3_CADICAL):
            build = partial(_build, stages)
            fast = engine == BITWUZLA and stages == _FAST
            claim, title = f"control/induction/stages_{stages}", _title(stages)
            yield Proof(claim, "mac: control", title, _MEANS, engine, build, timeout=900, fast=fast)
    for stages in (_FAST, *_RECOMMENDED):
        claim, title = f"control/induction_in_modes/stages_{stages}", f"{_title(stages)}, with a choice of modes"
        build = partial(_build, stages, **MODES)
        fast = stages == _FAST
        yield Proof(claim, "mac: control", title, _MEANS, BITWUZLA, build, timeout=900, fast=fast)


def _given(stages: int) -> dict[str, Any]:
    """Return the parameters: as small as can be in all but the depth."""
    operands = _TINY if stages < _RECOMMENDED[-1] else _SEVERAL
    registers = 16 if stages in _RECOMMENDED else 2
    # A chunk of any length that can be built.
    chunk_bits = 32 if stages == _FAST else 16
    return {"operands": operands, "inner": OPERAND, "registers": registers, "chunk_bits": chunk_bits, "stages": stages}


def _title(stages: int) -> str:
    given = _given(stages)
    formats = f", {len(given['operands'])} formats" if len(given["operands"]) > 1 else ""
    return f"{stages} stages, {given['registers']} registers{formats}, any beats"


def _build(stages: int, folder: Path, **changes: Any) -> str:
    return induction(component(stages, **changes), folder)


def component(stages: int, **changes: Any) -> ControlWithModel:
    """Return a unit of a depth beside its model, with the parameters of its proof unless others are given."""
    return ControlWithModel(**_given(stages) | changes)


def induction(top: ControlWithModel, folder: Path) -> str:
    """Return a formula with a solution if the invariant fails at the start, or holds in a cycle but not in the next."""
    netlist = netlist_of_verilog(top, folder)
    now = netlist.instance("now", given={"clk": "#b0"})
    constants = {name: now.port(name) for name in ("pair", "half") if name in now.inputs}
    given = {"clk": "#b0", "rst": "#b0"} | constants
    then = netlist.instance("then", given=given, held=now.registers)
    text = now.text + then.text
    ones = bits(-1, MOST)
    for port, words, kind, instance in (
        ("start", "at reset", "conditions", now),
        ("now", "in the cycle", "claims", now),
        ("then", "behind it", "conditions", then),
    ):
        text += named_conditions(port, words, top.names[kind], instance.port(kind), MOST)
    start = both(now.initial, inverse(equal(now.port("conditions"), ones)))
    is_reset = equal(now.port("rst"), "#b1")
    right = both(equal(now.port("claims"), ones), equal(then.port("conditions"), ones))
    # A beat that is offered during a reset is lost, so it may be anything.
    goes_on = both(inverse(is_reset), equal(now.port("legal"), "#b1"), inverse(right))
    # A part of the engine has no port for results; its claims cover its outputs.
    gives_none = [equal(then.port("o__valid"), "#b0")] if "o__valid" in then.outputs else []
    starts_anew = both(is_reset, inverse(both(equal(then.port("conditions"), ones), *gives_none)))
    step = both(equal(now.port("conditions"), ones), either(goes_on, starts_anew))
    return text + f"(assert {either(start, step)})\n"

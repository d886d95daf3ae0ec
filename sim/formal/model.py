"""What a multiply-accumulate unit has to make of its beats, one by one, by steps of which nothing is known."""

from __future__ import annotations

from collections.abc import Mapping

from amaranth import Const

from hdl.mac.lane import number_layout, operand_layout
from hdl.mac.parameters import MacParameters
from hdl.mac.ports import Error
from sim.formal.stored import plain_operand
from sim.formal.terms import bits, both, either, equal, inverse, slice_of

__all__ = ["REGISTERS", "Model"]

#: A pair, so that it can be used as one, too.
REGISTERS = (0, 1)
_CLASS, _FLAGS, _COUNT = 2, 5, 5
_ALIGNMENT, _UNSUPPORTED = (Const.cast(error).value for error in (Error.ALIGNMENT, Error.UNSUPPORTED))
#: No level: nothing has used the register yet.
_UNUSED = bits(3, 2)


class Model:
    """The registers of a unit after every beat, as definitions.

    A value is a word ``[flags | class | number]``; all zeros are +0.

    Parameters
    ----------
    parameters : MacParameters
        Of one operand format, all levels and two registers.
    """

    def __init__(self, parameters: MacParameters) -> None:
        self.parameters = parameters
        self.number = number_layout(parameters.formats).size
        self.operand = operand_layout(parameters.formats)
        self.code = parameters.formats.accumulator_width
        self.width = self.number + _CLASS + _FLAGS
        self.sort = f"(_ BitVec {self.width})"
        zero = bits(0, self.width)
        state = {"partial": zero, "narrow": zero, "count": bits(0, parameters.chunk_bits), "level": _UNUSED}
        self._state = {f"{name}_{register}": term for name, term in state.items() for register in REGISTERS}
        self._state |= {f"{name}_{register}": "false" for name in ("open", "later") for register in REGISTERS}
        self._state |= {"wide_0": zero}
        self._state |= {f"number_{register}_{refused}": bits(0, _COUNT) for register in REGISTERS for refused in (0, 1)}
        self._sorts = {"open": "Bool", "later": "Bool", "count": f"(_ BitVec {parameters.chunk_bits})"}
        self._sorts |= {"level": "(_ BitVec 2)", "number": f"(_ BitVec {_COUNT})"}

    @property
    def declarations(self) -> str:
        """The functions of which nothing is known."""
        operand, number, classes = (f"(_ BitVec {width})" for width in (self.operand.size, self.number, _CLASS))
        return (
            f"(declare-fun step ({operand} {operand} {number} {classes} (_ BitVec 1)) {self.sort})\n"
            f"(declare-fun code_of ({number} {classes} (_ BitVec 1)) (_ BitVec {self.code}))\n"
            f"(declare-fun promoted_of ({number} {classes}) {operand})\n"
        )

    def step(self, a: str, b: str, number: str, classes: str, wide: str) -> str:
        """Apply a step; of a narrow number only the bits that it has count."""
        formats = self.parameters.formats
        fraction_bits = formats.accumulator_precision - 1
        spare = (1 << fraction_bits - formats.operands[0].fraction_bits) - 1
        used = f"(bvand {number} (ite {equal(wide, '#b1')} {bits(-1, self.number)} {bits(~spare, self.number)}))"
        return f"(step {a} {b} {used} {slice_of(classes, _CLASS - 1, 0)} {wide})"

    def lane_output(self, port: str, value: str, wide: str) -> str:
        """Return what stands at a port of the lane when a step has given a value."""
        number, classes = self._number(value), self._class(value)
        low = self.parameters.formats.low_fraction_bits
        if port == "word":
            rest = self.number - low
            low_end = f"((_ zero_extend {rest - low}) {slice_of(number, low - 1, 0)})"
            return f"(ite {equal(wide, '#b1')} {low_end} {slice_of(number, self.number - 1, low)})"
        if port == "result_class":
            return slice_of(value, self.width - 1, self.number)
        if port == "code":
            return f"(code_of {number} {classes} {wide})"
        return f"(promoted_of {number} {classes})" if port == "promoted" else number

    def accept(self, cycle: int, takes: str, beat: Mapping[str, str]) -> str:
        """Define what a beat of a cycle makes of the state, if it is taken.

        Also ``legal_<cycle>``; ``gives_<cycle>_<register>_<refused>`` and ``answer_<cycle>``, the result that it will
        have; ``number_<cycle>_<register>_<refused>``, how many there have been before.
        """
        state, after = self._state, dict(self._state)
        text = "".join(
            f"(define-fun {name}_at_{cycle} () {self._sorts.get(name.partition('_')[0], self.sort)} {term})\n"
            for name, term in state.items()
        )
        state = {name: f"{name}_at_{cycle}" for name in state}
        level, first, last = beat["level"], equal(beat["first"], "#b1"), equal(beat["last"], "#b1")
        is_wide = inverse(equal(level, bits(2, 2)))
        error = (
            f"(ite {equal(level, bits(3, 2))} {bits(_UNSUPPORTED, 2)} "
            f"(ite {both(is_wide, equal(beat['register'], '#b1'))} {bits(_ALIGNMENT, 2)} {bits(0, 2)}))"
        )
        text += f"(define-fun error_{cycle} () (_ BitVec 2) {error})\n"
        refused = inverse(equal(f"error_{cycle}", bits(0, 2)))
        legal, answers = [either(inverse(takes), refused, first)], bits(0, self.width)
        fmt = self.parameters.formats.operands[0]
        a, b = (plain_operand(beat[name], fmt, self.operand) for name in ("a", "b"))
        one = plain_operand(bits(fmt.one, fmt.width), fmt, self.operand)
        wide_bit = f"(ite {is_wide} #b1 #b0)"
        for register in REGISTERS:
            own = {
                name: state[f"{name}_{register}"] for name in ("partial", "narrow", "count", "level", "open", "later")
            }
            is_here = equal(beat["register"], bits(register, 1))
            sound = both(takes, inverse(refused), is_here)
            at = f"{register}_{cycle}"
            wide = state["wide_0"] if register == 0 else bits(0, self.width)
            total = f"(ite {is_wide} {wide} {own['narrow']})"
            # A chain of level 0 has only a total; a chunk of the others starts at zero and ends in the total.
            chain = self._add(a, b, f"(ite {first} {bits(0, self.width)} {wide})", "#b1")
            text += f"(define-fun chain_{at} () {self.sort} {chain})\n"
            starts = either(first, inverse(own["open"]))
            text += f"(define-fun starts_{at} () Bool {starts})\n"
            before = f"(ite starts_{at} {bits(0, self.width)} {own['partial']})"
            text += f"(define-fun chunk_{at} () {self.sort} {self._add(a, b, before, '#b0')})\n"
            chunk_bits = self.parameters.chunk_bits
            length = f"(bvadd (ite starts_{at} {bits(0, chunk_bits)} {own['count']}) {bits(1, chunk_bits)})"
            text += f"(define-fun length_{at} () (_ BitVec {chunk_bits}) {length})\n"
            reached = both(inverse(equal("chunk", bits(0, chunk_bits))), equal(f"length_{at}", "chunk"))
            text += f"(define-fun ends_{at} () Bool {either(last, reached)})\n"
            is_first = either(first, inverse(own["later"]))
            promoted = f"(promoted_of {self._number(f'chunk_{at}')} {self._class(f'chunk_{at}')})"
            onto = f"(ite {is_first} {bits(0, self.width)} {total})"
            sum_ = self._add(promoted, one, onto, wide_bit, self._flags(f"chunk_{at}"))
            text += f"(define-fun promotion_{at} () {self.sort} {sum_})\n"
            is_chain = equal(level, bits(0, 2))
            text += f"(define-fun sound_{at} () Bool {sound})\n"
            text += f"(define-fun counts_{at} () Bool {both(f'sound_{at}', inverse(is_chain))})\n"
            promotes = both(f"counts_{at}", f"ends_{at}")
            after[f"partial_{register}"] = f"(ite counts_{at} chunk_{at} {own['partial']})"
            after[f"count_{register}"] = f"(ite counts_{at} length_{at} {own['count']})"
            after[f"open_{register}"] = f"(ite counts_{at} (not ends_{at}) {own['open']})"
            after[f"later_{register}"] = f"(ite counts_{at} {either(f'ends_{at}', inverse(is_first))} {own['later']})"
            after[f"narrow_{register}"] = f"(ite {both(promotes, inverse(is_wide))} promotion_{at} {own['narrow']})"
            if register == 0:
                chained = f"(ite {both(f'sound_{at}', is_chain)} chain_{at} {wide})"
                after["wide_0"] = f"(ite {both(promotes, is_wide)} promotion_{at} {chained})"
            used = either(f"sound_{at}", both(is_wide, f"sound_0_{cycle}"))
            after[f"level_{register}"] = f"(ite {used} {level} {own['level']})"
            same_pair = both(*(equal(state[f"level_{each}"], level) for each in REGISTERS))
            same = f"(ite {is_wide} {same_pair} {equal(own['level'], level)})"
            legal.append(both(is_here, same))
            answers = f"(ite {is_here} (ite {is_chain} chain_{at} promotion_{at}) {answers})"
            for is_refused in (0, 1):
                its = both(takes, refused, is_here) if is_refused else both(f"sound_{at}", last)
                gives, number = f"gives_{cycle}_{register}_{is_refused}", f"number_{register}_{is_refused}"
                text += f"(define-fun {gives} () Bool {its})\n"
                after[number] = f"(ite {gives} (bvadd {state[number]} {bits(1, _COUNT)}) {state[number]})"
        text += f"(define-fun legal_{cycle} () Bool {either(*legal)})\n"
        text += f"(define-fun value_{cycle} () {self.sort} {answers})\n"
        code = f"(code_of {self._number(f'value_{cycle}')} {self._class(f'value_{cycle}')} {wide_bit})"
        result = f"(concat {self._flags(f'value_{cycle}')} {code})"
        text += f"(define-fun answer_{cycle} () (_ BitVec {_FLAGS + self.code + 3}) "
        result = f"(ite {refused} {bits(0, _FLAGS + self.code)} {result})"
        text += f"(concat {beat['register']} error_{cycle} {result}))\n"
        self._state = after
        return text

    def number_at_end(self, register: int, refused: int) -> str:
        """Return how many results there have been after the last beat."""
        return self._state[f"number_{register}_{refused}"]

    def number_at(self, cycle: int, register: int, refused: int) -> str:
        """Return how many results there have been before the beat of a cycle."""
        return f"number_{register}_{refused}_at_{cycle}"

    def _number(self, value: str) -> str:
        return slice_of(value, self.number - 1, 0)

    def _class(self, value: str) -> str:
        return slice_of(value, self.number + _CLASS - 1, self.number)

    def _flags(self, value: str) -> str:
        return slice_of(value, self.width - 1, self.number + _CLASS)

    def _add(self, a: str, b: str, value: str, wide: str, flags: str = bits(0, _FLAGS)) -> str:
        """Return the value after a step; flags are those of the step, of the value before, and others."""
        given = self.step(a, b, self._number(value), self._class(value), wide)
        earlier = f"(concat (bvor {flags} {self._flags(value)}) {bits(0, self.number + _CLASS)})"
        return f"(bvor {given} {earlier})"

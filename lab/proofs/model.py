"""A sequential model of the multiply-accumulate unit: beat by beat, with uninterpreted functions as steps."""

from __future__ import annotations

from collections.abc import Mapping

from amaranth import Const

from golden.rounding import MODE_BITS
from hdl.mac.parameters import MacParameters
from hdl.mac.ports import Error
from lab.proofs.terms import bits, both, define, either, equal, inverse
from lab.proofs.unknown_step import UnknownStep

__all__ = ["ALIGNMENT", "NO_LEVEL", "REGISTERS", "UNSUPPORTED", "Chunk", "Model", "is_built"]

#: A pair, so that it can be used as one, too.
REGISTERS = (0, 1)
ALIGNMENT, UNSUPPORTED = (Const.cast(error).value for error in (Error.ALIGNMENT, Error.UNSUPPORTED))
#: Nothing has used the register yet.
NO_LEVEL = bits(3, 2)
_COUNT = 5


def is_built(beat: Mapping[str, str], parameters: MacParameters) -> str:
    """Tell whether a unit of all levels was built for the level and the rounding mode of a beat."""
    is_level = inverse(equal(beat["level"], bits(3, 2)))
    if "rounding" not in beat:
        return is_level
    modes = (bits(mode.value, MODE_BITS) for mode in parameters.formats.roundings)
    return both(is_level, either(*(equal(beat["rounding"], mode) for mode in modes)))


class Chunk:
    """The count of the products of one register: definitions for a beat, and the state behind it.

    Parameters
    ----------
    name : str
        Ends the names of the definitions.
    own : mapping
        Terms of the state ``open``, ``later``, ``count``, ``size``.
    first, last, counts : str
        Of the beat; whether it is a product of a chunk of this register.
    width : int
        Bits of the port ``chunk``.
    port : str
        What it says: the length of a chunk that starts; later it only matters whether it says 0.
    """

    def __init__(
        self, name: str, own: Mapping[str, str], first: str, last: str, counts: str, width: int, port: str
    ) -> None:
        self.starts, self.ends, self.is_first = f"starts_{name}", f"ends_{name}", f"is_first_{name}"
        length = f"(bvadd (ite {self.starts} {bits(0, width)} {own['count']}) {bits(1, width)})"
        reached = both(inverse(equal(port, bits(0, width))), equal(f"length_{name}", f"size_{name}"))
        self.text = define(self.starts, "Bool", either(first, inverse(own["open"])))
        self.text += define(f"size_{name}", f"(_ BitVec {width})", f"(ite {self.starts} {port} {own['size']})")
        self.text += define(f"length_{name}", f"(_ BitVec {width})", length)
        self.text += define(self.ends, "Bool", either(last, reached))
        self.text += define(self.is_first, "Bool", either(first, inverse(own["later"])))
        self.after = {
            "count": f"(ite {counts} length_{name} {own['count']})",
            "size": f"(ite {counts} size_{name} {own['size']})",
            "open": f"(ite {counts} (not {self.ends}) {own['open']})",
            "later": f"(ite {counts} {either(self.ends, inverse(self.is_first))} {own['later']})",
        }


class Model:
    """The registers of a unit after every beat, as definitions.

    Parameters
    ----------
    step : UnknownStep
        Of a unit of one operand format, all levels and two registers.
    """

    def __init__(self, step: UnknownStep) -> None:
        self.unknown = step
        self.chunk_bits = step.parameters.chunk_bits
        state = {"partial": step.zero, "narrow": step.zero, "count": bits(0, self.chunk_bits), "level": NO_LEVEL}
        state |= {"size": bits(0, self.chunk_bits), "open": "false", "later": "false"}
        self._state = {f"{name}_{register}": term for name, term in state.items() for register in REGISTERS}
        self._state |= {"wide_0": step.zero}
        self._state |= {f"number_{register}_{refused}": bits(0, _COUNT) for register in REGISTERS for refused in (0, 1)}
        self._sorts = {"open": "Bool", "later": "Bool", "count": f"(_ BitVec {self.chunk_bits})"}
        self._sorts |= {"size": self._sorts["count"], "level": "(_ BitVec 2)", "number": f"(_ BitVec {_COUNT})"}

    def accept(self, cycle: int, takes: str, beat: Mapping[str, str], port: str) -> str:
        """Define the state behind a beat of a cycle, if it is taken; `port` is the value of the port ``chunk``.

        Also ``legal_<cycle>``; ``gives_<cycle>_<register>_<refused>`` and ``answer_<cycle>``, the result that it will
        have; ``number_<register>_<refused>_at_<cycle>``, how many there have been before.
        """
        unknown, after = self.unknown, dict(self._state)
        text = "".join(
            define(f"{name}_at_{cycle}", self._sorts.get(name.partition("_")[0], unknown.sort), term)
            for name, term in self._state.items()
        )
        state = {name: f"{name}_at_{cycle}" for name in self._state}
        level, first, last = beat["level"], equal(beat["first"], "#b1"), equal(beat["last"], "#b1")
        is_wide, is_chain = inverse(equal(level, bits(2, 2))), equal(level, bits(0, 2))
        wide_bit = f"(ite {is_wide} #b1 #b0)"
        misaligned = both(is_wide, equal(beat["register"], "#b1"))
        error = f"(ite {misaligned} {bits(ALIGNMENT, 2)} {bits(0, 2)})"
        error = f"(ite {is_built(beat, unknown.parameters)} {error} {bits(UNSUPPORTED, 2)})"
        text += define(f"error_{cycle}", "(_ BitVec 2)", error)
        refused = inverse(equal(f"error_{cycle}", bits(0, 2)))
        a, b = unknown.entering(beat["a"]), unknown.entering(beat["b"])
        own_rounding = {"controls": unknown.controls_of(beat)}
        rounding = {"controls": unknown.controls_of(beat, promotion=True)}
        legal, answer = [either(inverse(takes), refused, first)], unknown.zero
        for register in REGISTERS:
            at = f"{register}_{cycle}"
            names = ("partial", "narrow", "count", "size", "level", "open", "later")
            own = {name: state[f"{name}_{register}"] for name in names}
            is_here = equal(beat["register"], bits(register, 1))
            text += define(f"sound_{at}", "Bool", both(takes, inverse(refused), is_here))
            text += define(f"counts_{at}", "Bool", both(f"sound_{at}", inverse(is_chain)))
            # A chain of level 0 has only a total; a chunk of the others starts at zero and ends in the total.
            wide = state["wide_0"] if register == 0 else unknown.zero
            chain = unknown.add(a, b, f"(ite {first} {unknown.zero} {wide})", "#b1", **own_rounding)
            text += define(f"chain_{at}", unknown.sort, chain)
            chunk = Chunk(at, own, first, last, f"counts_{at}", self.chunk_bits, port)
            text += chunk.text
            partial = unknown.add(a, b, f"(ite {chunk.starts} {unknown.zero} {own['partial']})", "#b0", **own_rounding)
            text += define(f"chunk_{at}", unknown.sort, partial)
            onto = f"(ite {chunk.is_first} {unknown.zero} (ite {is_wide} {wide} {own['narrow']}))"
            promoted, flags = unknown.promoted(f"chunk_{at}"), unknown.flags_of(f"chunk_{at}")
            promotion = unknown.add(promoted, unknown.one, onto, wide_bit, flags, **rounding)
            text += define(f"promotion_{at}", unknown.sort, promotion)
            promotes = both(f"counts_{at}", chunk.ends)

            after |= {f"{name}_{register}": term for name, term in chunk.after.items()}
            after[f"partial_{register}"] = f"(ite counts_{at} chunk_{at} {own['partial']})"
            after[f"narrow_{register}"] = f"(ite {both(promotes, inverse(is_wide))} promotion_{at} {own['narrow']})"
            if register == 0:
                chained = f"(ite {both(f'sound_{at}', is_chain)} chain_{at} {wide})"
                after["wide_0"] = f"(ite {both(promotes, is_wide)} promotion_{at} {chained})"
            used = either(f"sound_{at}", both(is_wide, f"sound_0_{cycle}"))
            after[f"level_{register}"] = f"(ite {used} {level} {own['level']})"
            same_pair = both(*(equal(state[f"level_{each}"], level) for each in REGISTERS))
            legal.append(both(is_here, f"(ite {is_wide} {same_pair} {equal(own['level'], level)})"))
            answer = f"(ite {is_here} (ite {is_chain} chain_{at} promotion_{at}) {answer})"
            for is_refused in (0, 1):
                gives, number = f"gives_{cycle}_{register}_{is_refused}", f"number_{register}_{is_refused}"
                its = both(takes, refused, is_here) if is_refused else both(f"sound_{at}", last)
                text += define(gives, "Bool", its)
                after[number] = f"(ite {gives} (bvadd {state[number]} {bits(1, _COUNT)}) {state[number]})"
        text += define(f"legal_{cycle}", "Bool", either(*legal))
        text += define(f"value_{cycle}", unknown.sort, answer)
        result = f"(concat {unknown.flags_of(f'value_{cycle}')} {unknown.code_of(f'value_{cycle}', wide_bit)})"
        result = f"(ite {refused} {bits(0, unknown.code_width + 5)} {result})"
        payload = f"(concat {beat['register']} error_{cycle} {result})"
        text += define(f"answer_{cycle}", f"(_ BitVec {unknown.code_width + 8})", payload)
        self._state = after
        return text

    def number_at_end(self, register: int, refused: int) -> str:
        """Return how many results there have been after the last beat."""
        return self._state[f"number_{register}_{refused}"]

    def number_at(self, cycle: int, register: int, refused: int) -> str:
        """Return how many results there have been before the beat of a cycle."""
        return f"number_{register}_{refused}_at_{cycle}"

"""A lane as uninterpreted functions: equal inputs give equal results, and nothing else is known."""

from __future__ import annotations

from collections.abc import Mapping

from hdl.mac.lane import number_layout, operand_layout
from hdl.mac.parameters import MacParameters
from lab.proofs.stored import plain_operand
from lab.proofs.terms import bits, equal, slice_of

__all__ = ["CLASS_WIDTH", "FLAGS_WIDTH", "UnknownStep"]

#: Bits of a class and of flags.
CLASS_WIDTH, FLAGS_WIDTH = 2, 5


class UnknownStep:
    """The values of a lane: each is a word ``[flags | class | number]``; all zeros are +0.

    Parameters
    ----------
    parameters : MacParameters
        Of one operand format, with flags.
    tag : str
        Ends the names of the functions.
    """

    def __init__(self, parameters: MacParameters, tag: str = "") -> None:
        self.parameters, self.tag = parameters, tag
        self.number = number_layout(parameters.formats).size
        self.operand = operand_layout(parameters.formats)
        self.code_width = parameters.formats.accumulator_width
        self.width = self.number + CLASS_WIDTH + FLAGS_WIDTH
        self.sort = f"(_ BitVec {self.width})"
        self.zero = bits(0, self.width)
        self.controls, self.counts = parameters.formats.controls, parameters.counters
        fmt = parameters.formats.operands[0]
        self.one = plain_operand(bits(fmt.one, fmt.width), fmt, self.operand)

    @property
    def declarations(self) -> str:
        """The functions."""
        operand, number, classes = (f"(_ BitVec {width})" for width in (self.operand.size, self.number, CLASS_WIDTH))
        last = f"(_ BitVec 1) (_ BitVec {self.controls.size})" if self.controls.size else "(_ BitVec 1)"
        return (
            f"(declare-fun step{self.tag} ({operand} {operand} {number} {classes} {last}) {self.sort})\n"
            f"(declare-fun code_of{self.tag} ({number} {classes} (_ BitVec 1)) (_ BitVec {self.code_width}))\n"
            f"(declare-fun promoted_of{self.tag} ({number} {classes}) {operand})\n"
            + (f"(declare-fun events_of{self.tag} ({number} {classes}) (_ BitVec 5))\n" if self.counts else "")
        )

    def entering(self, code: str) -> str:
        """Return a code as an operand."""
        return plain_operand(code, self.parameters.formats.operands[0], self.operand)

    def controls_of(self, beat: Mapping[str, str], *, promotion: bool = False) -> str:
        """Return a beat's controls for the rounding of its step, or of its promotion; none in a unit of one mode.

        That is one word, as `StepFormats.controls` has it.
        """
        names = ["random_promotion" if promotion and name == "random" else name for name, _ in self.controls]
        return (
            f"(concat {' '.join(beat[name] for name in reversed(names))})"
            if len(names) > 1
            else "".join(beat[name] for name in names)
        )

    def step(self, a: str, b: str, number: str, classes: str, wide: str, controls: str = "") -> str:
        """Apply a step; only the low bits of a narrow number count."""
        formats = self.parameters.formats
        spare = (1 << formats.accumulator_precision - 1 - formats.operands[0].fraction_bits) - 1
        used = f"(bvand {number} (ite {equal(wide, '#b1')} {bits(-1, self.number)} {bits(~spare, self.number)}))"
        return f"(step{self.tag} {a} {b} {used} {slice_of(classes, CLASS_WIDTH - 1, 0)} {wide} {controls})"

    def add(self, a: str, b: str, value: str, wide: str, flags: str = bits(0, FLAGS_WIDTH), controls: str = "") -> str:
        """Return the value after a step; its flags join the flags of the step, of the value before, and others."""
        given = self.step(a, b, self.number_of(value), self.class_of(value), wide, controls)
        earlier = f"(concat (bvor {flags} {self.flags_of(value)}) {bits(0, self.number + CLASS_WIDTH)})"
        return f"(bvor {given} {earlier})"

    def lane_output(self, port: str, value: str, wide: str) -> str:
        """Return the lane's word at a port when a step has given a value."""
        if port == "result_class":
            return slice_of(value, self.width - 1, self.number)
        if port == "code":
            return self.code_of(value, wide)
        if port == "events":
            return self.events_of(value)
        return self.promoted(value) if port == "promoted" else self.number_of(value)

    def promoted(self, value: str) -> str:
        """Return a value as an operand."""
        return f"(promoted_of{self.tag} {self.number_of(value)} {self.class_of(value)})"

    def code_of(self, value: str, wide: str) -> str:
        """Return the code of a value."""
        return f"(code_of{self.tag} {self.number_of(value)} {self.class_of(value)} {wide})"

    def events_of(self, value: str) -> str:
        """Return the flags that the step of a value raised, without earlier ones."""
        return f"(events_of{self.tag} {self.number_of(value)} {self.class_of(value)})"

    def number_of(self, value: str) -> str:
        """Return the number of a value."""
        return slice_of(value, self.number - 1, 0)

    def class_of(self, value: str) -> str:
        """Return the class of a value."""
        return slice_of(value, self.number + CLASS_WIDTH - 1, self.number)

    def flags_of(self, value: str) -> str:
        """Return the flags of a value."""
        return slice_of(value, self.width - 1, self.number + CLASS_WIDTH)
